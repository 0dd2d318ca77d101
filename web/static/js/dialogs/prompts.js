// The prompt editor: edit and delete the models' instructions, and try a summary prompt (prompt_try.js).
//
// Guarantee: edited text is kept until it is saved or discarded, even when the dialog is closed.

import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { arrowKeys, el } from "../page/dom.js";
import { Component, createRef, html, render } from "../page/html.js";
import { Trouble } from "../memory/trouble.js";
import { TryPrompt } from "./prompt_try.js";
import { settings } from "../page/state.js";
import { text } from "../page/texts.js";

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const NO_USER = { user: false }; // prompts belong to no person
const OTHERS = ["system", "memory", "repair"]; // all others are summary prompts

const drafts = new Map(); // unsaved text by prompt name, kept when the dialog closes

const isSummary = (name) => !OTHERS.includes(name);
const pathOf = (name) => `/api/prompts/${encodeURIComponent(name)}`;

export const summaryPrompts = ({ items }) => items.filter(({ name }) => isSummary(name));

/** Open the editor with a prompt, by default `summary`.  Resolves when it is closed. */
export async function openPrompts(name) {
  const editor = el("div.stack");
  render(html`<${Editor} name=${name || "summary"} />`, editor);
  await openDialog(text("dialogs.prompts.title"), () => editor, { wide: true });
  render(null, editor);
}

class Editor extends Component {
  list = createRef();
  field = createRef();
  state = {
    saved: null, // by name; null: not loaded yet
    name: this.props.name, // of the prompt that is edited
    note: "",
    problem: "", // with the text
    trouble: {}, // {message, again}: of anything else
  };

  componentDidMount() {
    this.settle = arrowKeys(this.list.current, () => [...this.list.current.querySelectorAll("button")]);
    this.read();
  }

  componentDidUpdate() {
    this.settle();
  }

  read = async () => {
    try {
      const { items } = await api.get("/api/prompts", {}, NO_USER);
      const saved = new Map(items.map((prompt) => [prompt.name, prompt]));
      this.setState({ saved, trouble: {} }, () => this.names.includes(this.state.name) || this.choose("summary"));
    } catch ({ message }) {
      this.setState({ trouble: { message, again: this.read } });
    }
  };

  get names() {
    return [...new Set([...(this.state.saved?.keys() ?? []), ...drafts.keys()])].sort();
  }

  textOf = (name) => drafts.get(name) ?? this.state.saved?.get(name)?.text ?? "";

  choose = (name, note = "") => this.setState({ name, note, problem: "", trouble: {} });

  add = (name) => {
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

  save = async () => {
    const { name, saved } = this.state;
    const words = this.textOf(name);
    try {
      const prompt = await api.put(pathOf(name), { text: words }, NO_USER);
      if (drafts.get(name) === words) drafts.delete(name);
      this.setState({ saved: new Map(saved).set(name, prompt) });
      if (name !== this.state.name) return;
      this.choose(name, text(isSummary(name) ? "dialogs.prompts.saved_summary" : "dialogs.prompts.saved", prompt));
      this.field.current.focus(); // the Save button is now disabled
    } catch ({ message }) {
      if (name === this.state.name) this.setState({ problem: message });
    }
  };

  remove = async () => {
    const { name } = this.state;
    const question = text("dialogs.prompts.delete_named", { name });
    if (!(await confirmed(question, text("dialogs.prompts.delete_means"), text("page.delete")))) return;
    try {
      await api.del(pathOf(name), NO_USER);
    } catch ({ message }) {
      return this.setState({ trouble: { message } });
    }
    drafts.delete(name);
    await this.read();
    if (settings.prompt === name && !this.state.saved.has(name)) settings.prompt = ""; // chats that name it would be refused
    this.field.current.focus();
  };

  render(_, { saved, name, note, problem, trouble }) {
    const about = text(`dialogs.prompts.about.${isSummary(name) ? "summary" : name}`, { name });
    return html`
      <div class="prompt-editor">
        <div class="prompt-side">
          <ul class="prompt-list" aria-label=${text("dialogs.prompts.title")} ref=${this.list}>
            ${this.names.map((one) => html`<li key=${one}>${this.row(one)}</li>`)}
          </ul>
          <${Adder} names=${this.names} add=${this.add} />
        </div>
        <div class="prompt-main">
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
            aria-invalid=${problem ? "true" : null}
            onInput=${this.type}
          />
          <p class="small ${problem && "problem"}" id="prompt-note" role="status">${problem || note}</p>
          <${Trouble} ...${trouble} />
          ${this.buttons()}
        </div>
      </div>
      ${saved && html`<${TryPrompt} key=${name} summary=${isSummary(name)} words=${this.textOf(name)} />`}
    `;
  }

  buttons() {
    const { saved, name } = this.state;
    const undo = text(saved?.has(name) ? "dialogs.prompts.undo" : "dialogs.prompts.discard");
    return html`
      <div class="row wrap">
        <button type="button" class="primary" disabled=${!drafts.has(name)} onClick=${this.save}>${text("page.save")}</button>
        ${drafts.has(name) && html`<button type="button" onClick=${this.undo}>${undo}</button>`}
        ${saved?.get(name)?.source === "stored" &&
        html`<button type="button" class="danger" onClick=${this.remove}>${text("page.delete")}</button>`}
      </div>
    `;
  }

  row(name) {
    const { version, source } = this.state.saved?.get(name) ?? {};
    const details = [
      source ? text(`dialogs.prompts.source.${source}`) : text("dialogs.prompts.new"),
      version ? text("dialogs.prompts.version", { version }) : "",
      drafts.has(name) ? text("dialogs.prompts.unsaved") : "",
    ];
    const current = name === this.state.name ? "true" : null;
    return html`
      <button type="button" class="prompt-name" aria-current=${current} onClick=${() => this.choose(name)}>
        <span>${name}</span>
        <span class="muted small">${details.filter(Boolean).join(", ")}</span>
      </button>
    `;
  }
}

/** A form for the name of a new prompt. */
class Adder extends Component {
  state = { problem: "" };

  submit = (event) => {
    event.preventDefault();
    const field = event.target.elements.name;
    const name = field.value.trim();
    let problem = "";
    if (!NAME.test(name)) problem = text("dialogs.prompts.name_rules");
    else if (this.props.names.includes(name)) problem = text("dialogs.prompts.exists");
    this.setState({ problem });
    if (problem) return;
    field.value = "";
    this.props.add(name);
  };

  render(_, { problem }) {
    const about = { autocomplete: "off", spellcheck: false, maxlength: 64, placeholder: "brief", "aria-describedby": "prompt-name-problem" };
    return html`
      <form class="stack" noValidate onSubmit=${this.submit}>
        <div class="row bottom">
          <label class="field grow">${text("dialogs.prompts.name")}<input type="text" name="name" ...${about} /></label>
          <button type="submit">${text("dialogs.prompts.add")}</button>
        </div>
        <p class="small problem" id="prompt-name-problem" role="alert">${problem}</p>
      </form>
    `;
  }
}
