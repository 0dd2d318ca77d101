// Bringing facts together: those that say the same are merged, those that contradict each other or are over are closed; and undo.
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { emit } from "../page/state.js";
import { date, text } from "../page/words.js";

const runsPath = () => `${api.personPath()}/consolidation`;

export class Tidy extends Component {
  state = { runs: [], note: "" };

  async load() {
    const { items: facts } = await api.get("/api/facts", { limit: 1 });
    const { items: runs } = facts.length ? await api.get(runsPath()) : { items: [] }; // of somebody new there are none
    this.setState({ runs });
  }

  consolidate = () => this.tidy("dialogs.overview.tidying", () => api.post(runsPath()));
  undo = () => this.tidy("dialogs.overview.undone", () => api.post(`${runsPath()}/undo`));

  tidy = (done, deed) =>
    this.attempt(async () => {
      await deed();
      this.setState({ note: text(done) });
      emit("memory");
    });

  render(_, { runs, note, busy, trouble }) {
    const [last] = runs;
    const about = text(last ? "dialogs.overview.last_run" : "dialogs.overview.no_run", { ...last, day: last ? date(last.at) : "" });
    return html`<section class="part"><h3>${text("dialogs.overview.tidy")}</h3>
        <${Trouble} ...${trouble} />
        <p class="muted small" role="status">${note || about}</p>
        <div class="row wrap"><button disabled=${busy} onClick=${this.consolidate}>${text("dialogs.overview.consolidate")}</button>
        ${last && html`<button disabled=${busy} onClick=${this.undo}>${text("dialogs.overview.undo")}</button>`}</div>
      </section>`;
  }
}
