// Tries a summary prompt on the chat on display: what its summary would be, and how it differs from the current one. Guarantee: trying a prompt stores nothing.
import * as api from "../page/api.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { EMPTY, partsOf } from "../memory/sections.js";
import { Differences } from "../memory/versions.js";
import { shown } from "../page/state.js";
import { modelName, text } from "../page/words.js";

/** `words` is the text of the prompt; only a prompt for the `summary` can be tried. */
export class TryPrompt extends Component {
  section = createRef();
  state = {
    found: null, // {latest, preview, builtin}: the current summary, the one with this prompt, and who wrote it
  };

  try = async () => {
    if (this.state.busy) return;
    this.setState({ found: null });
    await this.attempt(async () => {
      const found = await this.ask();
      this.setState({ found }, () => this.section.current.scrollIntoView({ block: "nearest" }));
    });
  };

  async ask() {
    const path = api.summaryPath(shown.sessionId);
    const [{ latest }, preview, ready] = await Promise.all([
      api.get(path),
      api.post(`${path}/preview`, { text: this.props.words }),
      api.get("/health/ready"),
    ]);
    return { latest, preview, builtin: ready.model.builtin };
  }

  /** Why the prompt can't be tried, or an empty text. */
  get hindrance() {
    if (!this.props.summary) return text("dialogs.prompts.only_summaries");
    if (shown.temporary) return text("dialogs.prompts.temporary");
    return shown.sessionId === null ? text("dialogs.prompts.no_chat") : "";
  }

  get note() {
    const { busy, found } = this.state;
    if (busy) return text("dialogs.prompts.trying");
    if (found) return text(found.builtin ? "dialogs.prompts.builtin" : "dialogs.prompts.nothing_stored");
    return this.hindrance;
  }

  render(_, { busy, found, trouble }) {
    return html`<div class="row wrap">
        <button aria-describedby="try-note" disabled=${this.hindrance} onClick=${this.try}>${text("dialogs.prompts.try")}</button>
        <p class="muted small ${busy ? "dots" : ""}" id="try-note" role="status">${this.note}</p>
      </div>
      <${Trouble} ...${trouble} />
      ${found &&
      html`<section class="stack" aria-label=${text("dialogs.prompts.result")} ref=${this.section}><${Compared} ...${found} /></section>
      `}
    `;
  }
}

function Compared({ latest, preview }) {
  const { model, since, tokens } = preview;
  const about = text("dialogs.prompts.result_about", {
    model: modelName(model),
    start: since ? text("dialogs.prompts.from_version", { version: since }) : text("dialogs.prompts.from_start"),
    tokens,
    current: latest ? text("dialogs.prompts.current", latest) : text("dialogs.prompts.no_summary"),
  });
  return html`<h3>${text("dialogs.prompts.result")}</h3>
    <p class="muted small">${about}</p>
    <${Differences} before=${partsOf(latest?.sections ?? EMPTY)} after=${partsOf(preview.sections)} />`;
}
