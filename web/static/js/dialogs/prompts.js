// The prompt editor: edit and delete the models' instructions, and try a summary prompt (prompt_try.js).
//
// Guarantee: edited text is kept until it is saved or discarded, even when the dialog is closed.
import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { Choice, Rows } from "../page/rows.js";
import { TryPrompt } from "./prompt_try.js";
import { keep, stored } from "../page/state.js";
import { text } from "../page/words.js";

const NAME = "[a-z0-9][a-z0-9_\\-]{0,63}";
const RULES = text("dialogs.prompts.name_rules");
const ABOUT = { title: RULES, pattern: NAME, required: true, autocomplete: "off", spellcheck: false };
const OTHERS = ["system", "memory", "profile", "overview", "feedback", "consolidation", "repair"]; // all others are summary prompts

const drafts = new Map(); // unsaved text by prompt name, kept when the dialog closes

const isSummary = (name) => !OTHERS.includes(name);
const pathOf = (name) => `/api/prompts/${encodeURIComponent(name)}`;
export const summaryPrompts = async () => (await api.get("/api/prompts")).items.filter(({ name }) => isSummary(name));

/** Open the editor with a prompt, by default `summary`.  Resolves when it is closed. */
export function openPrompts(name = "summary") {
  return openDialog(text("dialogs.prompts.title"), () => html`<${Editor} name=${name} />`, { wide: true });
}

class Editor extends Component {
  field = createRef();
  state = {
    saved: null, // by name; null: not loaded yet
    name: this.props.name, // of the prompt that is edited
    note: "",
  };

  async load() {
    const { items } = await api.get("/api/prompts");
    const saved = new Map(items.map((prompt) => [prompt.name, prompt]));
    const { name } = this.state;
    return { saved, name: saved.has(name) || drafts.has(name) ? name : "summary" };
  }

  get names() {
    return [...new Set([...(this.state.saved?.keys() ?? []), ...drafts.keys()])].sort();
  }

  textOf = (name) => drafts.get(name) ?? this.state.saved?.get(name)?.text ?? "";
  choose = (name, note = "") => this.setState({ name, note, trouble: {} });

  add = (event) => {
    event.preventDefault();
    const name = event.target.elements.name.value;
    event.target.reset();
    if (this.names.includes(name)) return this.choose(name, text("dialogs.prompts.exists"));
    const copied = isSummary(this.state.name) ? this.state.name : "summary";
    drafts.set(name, this.textOf(copied));
    this.choose(name, text("dialogs.prompts.copied", { name: copied }));
    this.field.current.focus();
  };

  type = ({ target: { value } }) => {
    const { name, saved } = this.state;
    if (value === saved.get(name)?.text) drafts.delete(name);
    else drafts.set(name, value);
    this.choose(name);
  };

  undo = () => {
    const { name, saved } = this.state;
    drafts.delete(name);
    this.choose(saved.has(name) ? name : "summary");
    this.field.current.focus();
  };

  save = () =>
    this.attempt(async () => {
      const { name, saved } = this.state;
      const words = this.textOf(name);
      const prompt = await api.put(pathOf(name), { text: words });
      if (drafts.get(name) === words) drafts.delete(name);
      this.setState({ saved: new Map(saved).set(name, prompt) });
      if (name !== this.state.name) return;
      this.choose(name, text(isSummary(name) ? "dialogs.prompts.saved_summary" : "dialogs.prompts.saved", prompt));
      this.field.current.focus(); // the Save button is now disabled
    });

  remove = async () => {
    const { name } = this.state;
    const question = text("dialogs.prompts.delete_named", { name });
    if (!(await confirmed(question, text("dialogs.prompts.delete_means"), text("page.delete")))) return;
    await this.attempt(async () => {
      await api.del(pathOf(name));
      drafts.delete(name);
      await this.read();
      this.field.current.focus();
      if (!this.names.includes(stored("prompt"))) keep("prompt", ""); // messages that name it would be refused
    });
  };

  render(_, { saved, name, note, trouble }) {
    const about = text(`dialogs.prompts.about.${isSummary(name) ? "summary" : name}`, { name });
    return html`<div class="choosing">
        <div class="stack">
          <${Rows} class="choices"><ul aria-label=${text("dialogs.prompts.title")}>${this.names.map(this.row)}</ul><//>
          <form class="row bottom" onSubmit=${this.add}>
            <label class="field grow">${text("dialogs.prompts.name")}<input type="text" name="name" placeholder="brief" ...${ABOUT} /></label>
            <button type="submit">${text("dialogs.prompts.add")}</button>
          </form>
        </div>
        <div class="chosen">
          <p class="muted small" id="prompt-about">${about}</p>
          <textarea
            class="mono"
            rows="14"
            spellcheck=${false}
            ref=${this.field}
            value=${this.textOf(name)}
            disabled=${!saved}
            aria-label=${text("dialogs.prompts.text")}
            aria-describedby="prompt-about prompt-note"
            aria-invalid=${trouble?.message ? "true" : null}
            onInput=${this.type}
          />
          <div id="prompt-note"><p class="small" role="status">${note}</p><${Trouble} ...${trouble} /></div>
          ${this.buttons()}
        </div>
      </div>
      ${saved && html`<${TryPrompt} key=${name} summary=${isSummary(name)} words=${this.textOf(name)} />`}
    `;
  }

  buttons() {
    const { saved, name } = this.state;
    const undo = text(saved?.has(name) ? "dialogs.prompts.undo" : "dialogs.prompts.discard");
    return html`<div class="row wrap">
        <button class="primary" disabled=${!drafts.has(name)} onClick=${this.save}>${text("page.save")}</button>
        ${drafts.has(name) && html`<button onClick=${this.undo}>${undo}</button>`}
        ${saved?.get(name)?.source === "stored" && html`<button class="danger" onClick=${this.remove}>${text("page.delete")}</button>`}
      </div>`;
  }

  row = (name) => {
    const { version, source } = this.state.saved?.get(name) ?? {};
    const details = [
      source ? text(`dialogs.prompts.source.${source}`) : text("dialogs.prompts.new"),
      version ? text("dialogs.prompts.version", { version }) : "",
      drafts.has(name) ? text("dialogs.prompts.unsaved") : "",
    ];
    const about = { name, details: details.filter(Boolean).join(", "), chosen: name === this.state.name };
    return html`<${Choice} key=${name} ...${about} onClick=${() => this.choose(name)} />`;
  };
}
