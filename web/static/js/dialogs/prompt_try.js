// Tries a summary prompt on the chat on display: what its summary would be, and how it differs from the current one.
// Guarantee: trying a prompt stores nothing.

import * as api from "../page/api.js";
import { Component, createRef, html } from "../page/html.js";
import { EMPTY } from "../memory/sections.js";
import { Differences } from "../memory/versions.js";
import { shown } from "../page/state.js";
import { text } from "../page/texts.js";
import { modelName } from "../page/words.js";

/** `words` is the text of the prompt; only a prompt for the `summary` can be tried. */
export class TryPrompt extends Component {
  start = createRef();
  cancel = createRef();
  section = createRef();
  state = {
    trying: null, // the AbortController of the request in progress
    note: "",
    failed: false,
    found: null, // {latest, preview}: the current summary, and the one with this prompt
  };

  componentWillUnmount() {
    this.state.trying?.abort();
  }

  componentDidUpdate(props, { found }) {
    if (this.state.found && !found) this.section.current.scrollIntoView({ block: "nearest" });
  }

  try = async () => {
    const trying = new AbortController();
    this.setState({ trying, note: text("dialogs.prompts.trying"), failed: false, found: null }, () => this.cancel.current.focus());
    try {
      const { found, builtin } = await this.ask(trying.signal);
      this.setState({ found, note: text(builtin ? "dialogs.prompts.builtin" : "dialogs.prompts.nothing_stored") });
    } catch (error) {
      const failed = error.name !== "AbortError";
      this.setState({ failed, note: failed ? error.message : text("dialogs.prompts.cancelled") });
    }
    const focused = document.activeElement === this.cancel.current;
    this.setState({ trying: null }, () => focused && this.start.current.focus());
  };

  async ask(signal) {
    const path = api.summaryPath(shown.sessionId);
    const [{ latest }, preview, ready] = await Promise.all([
      api.get(path, {}, { signal }),
      api.post(`${path}/preview`, { text: this.props.words }, { signal }),
      api.get("/health/ready", {}, { user: false }),
    ]);
    return { found: { latest, preview }, builtin: ready.model.builtin };
  }

  /** Why the prompt can't be tried, or an empty text. */
  get hindrance() {
    if (!this.props.summary) return text("dialogs.prompts.only_summaries");
    if (shown.temporary) return text("dialogs.prompts.temporary");
    return shown.sessionId === null ? text("dialogs.prompts.no_chat") : "";
  }

  render(_, { trying, note, failed, found }) {
    const { hindrance } = this;
    const looks = `${failed ? "problem" : "muted"} small ${trying ? "dots" : ""}`;
    return html`
      <div class="row wrap">
        <button type="button" aria-describedby="try-note" disabled=${hindrance || trying} ref=${this.start} onClick=${this.try}>
          ${text("dialogs.prompts.try")}
        </button>
        ${trying && html`<button type="button" ref=${this.cancel} onClick=${() => trying.abort()}>${text("page.cancel")}</button>`}
        <p class=${looks} id="try-note" role="status">${hindrance || note}</p>
      </div>
      ${found && html`<section class="stack" aria-label=${text("dialogs.prompts.result")} ref=${this.section}>${compared(found)}</section>`}
    `;
  }
}

function compared({ latest, preview }) {
  const about = text("dialogs.prompts.result_about", {
    model: modelName(preview.model),
    start: preview.since ? text("dialogs.prompts.from_version", { version: preview.since }) : text("dialogs.prompts.from_start"),
    tokens: preview.tokens,
    current: latest ? text("dialogs.prompts.current", latest) : text("dialogs.prompts.no_summary"),
  });
  return html`
    <h3>${text("dialogs.prompts.result")}</h3>
    <p class="muted small">${about}</p>
    <${Differences} before=${latest?.sections ?? EMPTY} after=${preview.sections} />
  `;
}
