// The prompt editor: edit and delete the models' instructions, and try a summary prompt on this chat.
//
// Guarantee: edited text is kept until it is saved or discarded, even when the dialog is closed.  Trying a prompt
// stores nothing.

import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { arrowKeys, button, el } from "../page/dom.js";
import { html, render } from "../page/html.js";
import { EMPTY } from "../memory/sections.js";
import { Differences } from "../memory/versions.js";
import { settings, shown } from "../page/state.js";
import { text } from "../page/texts.js";
import { modelName } from "../page/words.js";

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const NO_USER = { user: false }; // prompts belong to no person

const OTHERS = ["system", "memory", "repair"]; // all others are summary prompts

const drafts = new Map(); // unsaved text by prompt name, kept when the dialog closes

export const summaryPrompts = ({ items }) => items.filter((prompt) => !OTHERS.includes(prompt.name));

/** Open the editor with a prompt, by default `summary`.  Resolves when it is closed. */
export function openPrompts(name = "") {
  const editor = new Editor(name || "summary");
  return openDialog(text("dialogs.prompts.title"), () => editor.nodes(), { wide: true }).finally(() => editor.leave());
}

class Editor {
  #saved = new Map(); // by name
  #name;
  #trying = null; // the AbortController of the preview in progress
  #list = el("ul.prompt-list", { "aria-label": text("dialogs.prompts.title") });
  #about = el("p.muted.small", { id: "prompt-about" });
  #field = el("textarea.mono", {
    rows: 14,
    spellcheck: false,
    disabled: true,
    "aria-label": text("dialogs.prompts.text"),
    "aria-describedby": "prompt-about prompt-note",
    oninput: () => this.#typed(),
  });
  #note = el("p.small", { id: "prompt-note", role: "status" });
  #save = button(text("page.save"), () => this.#store(), { kind: "primary", disabled: true });
  #back = button("", () => this.#takeBack(), { hidden: true });
  #delete = button(text("page.delete"), () => this.#remove(), { kind: "danger", hidden: true });
  #try = button(text("dialogs.prompts.try"), () => this.#preview(), { "aria-describedby": "try-note" });
  #cancel = button(text("page.cancel"), () => this.#trying?.abort(), { hidden: true });
  #tryNote = el("p.muted.small", { id: "try-note", role: "status" });
  #result = el("div.prompt-result", {});
  #settle;

  constructor(name) {
    this.#name = name;
    this.#settle = arrowKeys(this.#list, () => [...this.#list.querySelectorAll("button")]);
    this.#read();
  }

  nodes() {
    return [
      el(
        "div.prompt-editor",
        {},
        el("div.prompt-side", {}, this.#list, this.#adder()),
        el(
          "div.prompt-main",
          {},
          this.#about,
          this.#field,
          this.#note,
          el("div.row.wrap", {}, this.#save, this.#back, this.#delete, el("span.grow", {}), this.#try, this.#cancel),
          this.#tryNote,
        ),
      ),
      this.#result,
    ];
  }

  leave() {
    this.#trying?.abort();
  }

  // -- which prompt

  async #read() {
    try {
      const { items } = await api.get("/api/prompts", {}, NO_USER);
      this.#saved = new Map(items.map((prompt) => [prompt.name, prompt]));
    } catch (error) {
      this.#complain(
        error.message,
        button(text("page.try_again"), () => this.#read(), { kind: "link" }),
      );
      return;
    }
    if (!this.#names().includes(this.#name)) this.#name = "summary";
    this.#show();
  }

  #names() {
    return [...new Set([...this.#saved.keys(), ...drafts.keys()])].sort();
  }

  #text(name) {
    return drafts.get(name) ?? this.#saved.get(name)?.text ?? "";
  }

  #choose(name) {
    this.leave();
    this.#name = name;
    this.#result.replaceChildren();
    this.#show();
    this.#list.querySelector("[aria-current=true]").focus();
  }

  #show() {
    const name = this.#name;
    this.#about.textContent = text(`dialogs.prompts.about.${OTHERS.includes(name) ? name : "summary"}`, { name });
    this.#field.value = this.#text(name);
    this.#field.disabled = false;
    this.#say("");
    this.#drawList();
    this.#state();
  }

  #drawList() {
    const focused = this.#list.contains(document.activeElement);
    this.#list.replaceChildren(
      ...this.#names().map((name) => {
        const saved = this.#saved.get(name);
        const details = [
          saved ? text(`dialogs.prompts.source.${saved.source}`) : text("dialogs.prompts.new"),
          saved?.version ? text("dialogs.prompts.version", saved) : "",
          drafts.has(name) ? text("dialogs.prompts.unsaved") : "",
        ];
        return el(
          "li",
          {},
          el(
            "button.prompt-name",
            { type: "button", "aria-current": name === this.#name ? "true" : null, onclick: () => this.#choose(name) },
            el("span", {}, name),
            el("span.muted.small", {}, details.filter(Boolean).join(", ")),
          ),
        );
      }),
    );
    this.#settle();
    if (focused) this.#list.querySelector("[aria-current=true]").focus();
  }

  #adder() {
    const problem = el("p.small.problem", { id: "prompt-name-problem", role: "alert" });
    const field = el("input", {
      type: "text",
      autocomplete: "off",
      spellcheck: false,
      maxLength: 64,
      placeholder: "brief",
      "aria-describedby": "prompt-name-problem",
    });
    return el(
      "form.stack",
      {
        noValidate: true,
        onsubmit: (event) => {
          event.preventDefault();
          const name = field.value.trim();
          problem.textContent = "";
          if (!NAME.test(name)) problem.textContent = text("dialogs.prompts.name_rules");
          else if (this.#names().includes(name)) problem.textContent = text("dialogs.prompts.exists");
          if (problem.textContent) return;
          const copied = OTHERS.includes(this.#name) ? "summary" : this.#name;
          drafts.set(name, this.#text(copied));
          field.value = "";
          this.#choose(name);
          this.#say(text("dialogs.prompts.copied", { name: copied }));
          this.#field.focus();
          this.#field.setSelectionRange(0, 0);
          this.#field.scrollTop = 0;
        },
      },
      el(
        "div.row.bottom",
        {},
        el("label.field.grow", {}, text("dialogs.prompts.name"), field),
        el("button", { type: "submit" }, text("dialogs.prompts.add")),
      ),
      problem,
    );
  }

  // -- its text

  #typed() {
    const name = this.#name;
    if (this.#field.value === this.#saved.get(name)?.text) drafts.delete(name);
    else drafts.set(name, this.#field.value);
    this.#say("");
    this.#drawList();
    this.#state();
  }

  #takeBack() {
    drafts.delete(this.#name);
    if (!this.#saved.has(this.#name)) this.#name = this.#names()[0];
    this.#show();
    this.#field.focus();
  }

  async #store() {
    const name = this.#name;
    const words = this.#field.value;
    this.#save.disabled = true;
    try {
      const saved = await api.put(`/api/prompts/${encodeURIComponent(name)}`, { text: words }, NO_USER);
      this.#saved.set(name, saved);
      if (drafts.get(name) === words) drafts.delete(name);
      if (name !== this.#name) return this.#drawList();
      this.#show();
      this.#say(text(OTHERS.includes(name) ? "dialogs.prompts.saved" : "dialogs.prompts.saved_summary", saved));
      this.#field.focus(); // the Save button is now disabled
    } catch (error) {
      if (name === this.#name) this.#complain(error.message);
    }
    this.#state();
  }

  async #remove() {
    const name = this.#name;
    const question = text("dialogs.prompts.delete_named", { name });
    if (!(await confirmed(question, text("dialogs.prompts.delete_means"), text("page.delete")))) return;
    try {
      await api.del(`/api/prompts/${encodeURIComponent(name)}`, NO_USER);
    } catch (error) {
      return this.#complain(error.message, "");
    }
    drafts.delete(name);
    await this.#read();
    if (settings.prompt === name && !this.#saved.has(name)) settings.prompt = ""; // chats that name it would be refused
    this.#field.focus();
  }

  #say(words) {
    this.#note.className = "small";
    this.#note.textContent = words;
    this.#field.removeAttribute("aria-invalid");
  }

  #complain(words, ...more) {
    this.#note.className = "small problem";
    this.#note.replaceChildren(words, " ", ...more);
    if (!more.length) this.#field.setAttribute("aria-invalid", "true");
  }

  /** Update which buttons are enabled, and explain why a prompt can't be tried. */
  #state() {
    const draft = drafts.has(this.#name);
    this.#save.disabled = !draft;
    this.#back.hidden = !draft;
    this.#delete.hidden = this.#saved.get(this.#name)?.source !== "stored";
    this.#back.textContent = text(this.#saved.has(this.#name) ? "dialogs.prompts.undo" : "dialogs.prompts.discard");
    let why = "";
    if (OTHERS.includes(this.#name)) why = text("dialogs.prompts.only_summaries");
    else if (shown.temporary) why = text("dialogs.prompts.temporary");
    else if (shown.sessionId === null) why = text("dialogs.prompts.no_chat");
    this.#try.disabled = why !== "" || this.#trying !== null || this.#field.disabled; // disabled while the text is loading
    this.#cancel.hidden = this.#trying === null;
    if (!this.#trying) this.#tryNote.textContent = why;
  }

  // -- trying it

  async #preview() {
    const path = api.summaryPath(shown.sessionId);
    const trying = new AbortController();
    this.#trying = trying;
    this.#state();
    this.#cancel.focus();
    this.#tryNote.className = "muted small dots";
    this.#tryNote.textContent = text("dialogs.prompts.trying");
    this.#result.replaceChildren();
    let said = text("dialogs.prompts.nothing_stored");
    let failed = false;
    try {
      const options = { signal: trying.signal };
      const [current, preview, ready] = await Promise.all([
        api.get(path, {}, options),
        api.post(`${path}/preview`, { text: this.#field.value }, options),
        api.get("/health/ready", {}, NO_USER),
      ]);
      if (ready.model.builtin) said = text("dialogs.prompts.builtin");
      this.#result.append(comparison(current.latest, preview));
      this.#result.scrollIntoView({ block: "nearest" });
    } catch (error) {
      failed = error.name !== "AbortError";
      said = failed ? error.message : text("dialogs.prompts.cancelled");
    }
    const focused = document.activeElement === this.#cancel;
    this.#trying = null;
    this.#tryNote.className = failed ? "small problem" : "muted small";
    this.#state();
    this.#tryNote.textContent = said;
    if (focused) this.#try.focus();
  }
}

function comparison(latest, preview) {
  const title = text("dialogs.prompts.result");
  const about = text("dialogs.prompts.result_about", {
    model: modelName(preview.model),
    start: preview.since ? text("dialogs.prompts.from_version", { version: preview.since }) : text("dialogs.prompts.from_start"),
    tokens: preview.tokens,
    current: latest ? text("dialogs.prompts.current", latest) : text("dialogs.prompts.no_summary"),
  });
  const changes = el("div.stack");
  render(html`<${Differences} before=${latest?.sections ?? EMPTY} after=${preview.sections} />`, changes);
  return el("section.stack", { "aria-label": title },
    el("h3", {}, title),
    el("p.muted.small", {}, about),
    changes,
  );
}
