// All of a person's data: export it to a file, import it from a file, erase it, or bring the facts in it together.
//
// Guarantee: data is erased only after the person has typed a word to confirm.  Then the page shows the receipt.
import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { chooseFiles, saveFile } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { closePanel } from "../page/panels.js";
import { emit, space, whose } from "../page/state.js";
import { date, moment, number, text, textParts } from "../page/words.js";
import { backlogElement, showBacklog } from "./backlog.js";
import { importElement, importFiles } from "./import.js";

// What the server counts, in display order.
const COUNTED = [
  ...["sessions", "messages", "facts", "summaries", "edited_summaries", "turns", "fact_revisions"],
  ...["items", "item_versions", "archives", "jobs", "index_documents"],
];

const isUnnamed = () => whose() === "me" && !space();
const label = (key) => text(`dialogs.person_data.labels.${key}`);

/** `leave()` closes the dialog around it. */
export class PersonData extends Component {
  work = createRef();
  state = { note: "" };

  componentDidMount() {
    this.work.current.append(importElement, backlogElement);
    showBacklog();
  }

  /** Do one thing at a time.  `deed()` resolves to what to say then. */
  run = (note, deed) => async () => {
    if (this.state.busy) return;
    let done = "";
    this.setState({ note });
    await this.attempt(async () => (done = await deed()));
    this.setState({ note: done });
  };

  exportAs = (format) =>
    this.run(text("dialogs.person_data.exporting"), async () => {
      const { blob, name } = await api.download(`${api.personPath()}/export?format=${format}`);
      saveFile(blob, name);
      return text("dialogs.person_data.exported", { name });
    });

  eraseAll = this.run("", async () => {
    const user = whose();
    const kept = await api.find(api.personPath());
    if (!kept) return text("dialogs.person_data.nothing", { user });
    const count = (kind) => text(`dialogs.import.counts.${kind}`, { count: kept[kind] });
    const counts = ["sessions", "messages", "facts"].map(count).join(", ");
    const means = text(`dialogs.person_data.erase_${isUnnamed() ? "yours" : "means"}`, { user, counts });
    const typed = text("dialogs.person_data.erase_typed");
    const title = text("dialogs.person_data.erase_title");
    if (!(await confirmed(title, means, text("dialogs.person_data.erase"), { typed }))) return "";
    const receipt = await api.del(api.personPath());
    emit("erased", { of: user }); // removes the data from the page
    await showReceipt(receipt);
    this.props.leave();
    closePanel(); // on a phone the list of chats covers it
    return "";
  });

  choose = async () => importFiles(await chooseFiles(".json,.jsonl,.md,.html,.csv,.af,.zip,application/json,application/zip"));

  render(_, { busy, note, trouble }) {
    const told = isUnnamed() ? text("dialogs.person_data.yours") : textParts("dialogs.person_data.whose", { user: html`<strong>${whose()}</strong>` });
    return html`<div class="person">
        <div class="row wrap">
          <p class="grow">${told}</p>
          <button onClick=${this.exportAs("json")}>${text("dialogs.person_data.export")}</button>
          <button onClick=${this.exportAs("markdown")}>${text("dialogs.person_data.export_to_read")}</button>
          <button title=${text("dialogs.import.accepted")} onClick=${this.choose}>${text("dialogs.import.choose")}</button>
          <button class="danger" onClick=${this.eraseAll}>${text("dialogs.person_data.erase")}</button>
        </div>
        <p class="small ${busy && note ? "muted dots" : ""}" role="status">${note}</p>
        <${Trouble} ...${trouble} />
        <div class="stack" ref=${this.work} />
      </div>`;
  }
}

function showReceipt(receipt) {
  const { user_id, space, erased_at: at, erased, pending = [] } = receipt;
  const save = () => {
    const words = JSON.stringify(receipt, null, 2);
    saveFile(new Blob([words], { type: "application/json" }), `recap-erased-${at.slice(0, 10)}.json`);
  };
  const row = (key) => html`<tr><th scope="row">${label(key)}</th><td>${number(erased[key])}</td></tr>`;
  const content = (close) => html`<p>${text("dialogs.person_data.erased", { user: user_id ?? space, at: moment(at) })}</p>
    <table class="receipt"><caption class="visually-hidden">${text("dialogs.person_data.receipt")}</caption><tbody>${COUNTED.map(row)}</tbody></table>
    ${pending.length > 0 && html`<p class="notice">${text("dialogs.person_data.pending", { places: pending.map(label).join(", ") })}</p>`}
    <div class="row end">
      <button onClick=${save}>${text("dialogs.person_data.download_receipt")}</button>
      <button class="primary" autofocus onClick=${() => close()}>${text("dialogs.person_data.close_receipt")}</button>
    </div>`;
  return openDialog(text("dialogs.person_data.erased_title"), content);
}

const runsPath = () => `${api.personPath()}/consolidation`;

/** Bringing facts together: those that say the same are merged, those that contradict each other or are over are closed; and undo. */
export class Tidy extends Component {
  state = { runs: [], note: "" };

  async load() {
    const { items: facts } = await api.get("/api/facts", { limit: 1 });
    const { items: runs } = facts.length ? await api.get(runsPath()) : { items: [] }; // of somebody new there are none
    return { runs };
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
