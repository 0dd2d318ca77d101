// The instructions for the chat on display, which the server stores with it.
//
// Guarantee: typed text that can't be stored is not lost silently, even when the dialog is closed.
import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { Component, Trouble, html } from "../page/html.js";
import { shown } from "../page/state.js";
import { text, tooLong } from "../page/words.js";

const CHARS_MAX = 20_000;

export class SystemPrompt extends Component {
  path = shown.sessionId && api.sessionPath(shown.sessionId); // null before the first message is stored
  state = { words: null, note: "" }; // null: not loaded yet

  componentWillUnmount() {
    this.closed = true;
  }

  async load() {
    const session = this.path && (await api.find(this.path));
    if (!session) this.path = null;
    this.kept = session ? (session.system_prompt ?? "") : shown.systemPrompt;
    return { words: this.kept };
  }

  save = async () => {
    const wanted = this.state.words?.trim() ?? this.kept;
    if (wanted === this.kept) return;
    try {
      const problem = tooLong(wanted, CHARS_MAX);
      if (problem) throw new Error(problem);
      if (this.path) await api.patch(this.path, { system_prompt: wanted || null });
      else shown.systemPrompt = wanted;
      this.kept = wanted;
      this.setState({ note: text(wanted ? "dialogs.settings.system_saved" : "dialogs.settings.system_emptied") });
    } catch ({ message }) {
      this.setState({ note: text("dialogs.settings.system_failed", { why: message }) });
      const title = text("dialogs.settings.system_unsaved");
      if (this.closed && (await confirmed(title, message, text("page.try_again")))) await this.save();
    }
  };

  render(_, { words, note, trouble }) {
    const where = this.path ? "chat" : shown.temporary ? "temporary" : "new";
    const about = `${text("dialogs.settings.system_about")} ${text(`dialogs.settings.system_kept.${where}`)}`;
    return html`<p class="muted small" id="system-help">${about}</p>
      <textarea
        rows="3"
        placeholder=${text("dialogs.settings.system_default")}
        aria-label=${text("dialogs.settings.titles.system")}
        aria-describedby="system-help"
        value=${words ?? ""}
        disabled=${words === null}
        onInput=${({ target }) => this.setState({ words: target.value })}
        onChange=${this.save}
      />
      <p class="small" role="status">${note}</p>
      <${Trouble} ...${trouble} />`;
  }
}
