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
import { modelName, number } from "../page/words.js";

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const NO_USER = { user: false }; // prompts belong to no person

// For each kind of prompt its purpose and its variables.
const OTHERS = {
  system: ["is the beginning of the main model's prompt", "It has no variables."],
  memory: [
    "follows an application's own system prompt, and tells the main model how to read what is remembered",
    "It has no variables.",
  ],
  repair: ["asks the mini model to repair an unusable answer", "It may use {{ problem }}."],
};
const SUMMARY = [
  "tells the mini model what a summary contains",
  "It may use {{ max_words }}, {% if first %}, and {% for section in sections %} with {{ section.name }} and " +
    "{{ section.about }}.",
];
const SOURCES = { packaged: "comes with Recap", file: "from a file", stored: "saved here" };

const drafts = new Map(); // unsaved text by prompt name, kept when the dialog closes

export const summaryPrompts = ({ items }) => items.filter((prompt) => !(prompt.name in OTHERS));

/** Open the editor with a prompt, by default `summary`.  Resolves when it is closed. */
export function openPrompts(name = "") {
  const editor = new Editor(name || "summary");
  return openDialog("Prompts", () => editor.nodes(), { wide: true }).finally(() => editor.leave());
}

class Editor {
  #saved = new Map(); // by name
  #name;
  #trying = null; // the AbortController of the preview in progress
  #list = el("ul.prompt-list", { "aria-label": "Prompts" });
  #about = el("p.muted.small", { id: "prompt-about" });
  #field = el("textarea.mono", {
    rows: 14,
    spellcheck: false,
    disabled: true,
    "aria-label": "The prompt's text",
    "aria-describedby": "prompt-about prompt-note",
    oninput: () => this.#typed(),
  });
  #note = el("p.small", { id: "prompt-note", role: "status" });
  #save = button("Save", () => this.#store(), { kind: "primary", disabled: true });
  #back = button("Back to the saved text", () => this.#takeBack(), { hidden: true });
  #delete = button("Delete", () => this.#remove(), { kind: "danger", hidden: true });
  #try = button("Try it on this chat", () => this.#preview(), { "aria-describedby": "try-note" });
  #cancel = button("Cancel", () => this.#trying?.abort(), { hidden: true });
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
        button("Try again", () => this.#read(), { kind: "link" }),
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
    const [purpose, variables] = OTHERS[name] ?? SUMMARY;
    this.#about.textContent = `“${name}” ${purpose}. ${variables}`;
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
        const detail = saved
          ? `${SOURCES[saved.source] ?? saved.source}${saved.version ? `, version ${saved.version}` : ""}`
          : "new";
        return el(
          "li",
          {},
          el(
            "button.prompt-name",
            { type: "button", "aria-current": name === this.#name ? "true" : null, onclick: () => this.#choose(name) },
            el("span", {}, name),
            el("span.muted.small", {}, drafts.has(name) ? `${detail}, not saved` : detail),
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
          const there = this.#names().includes(name);
          problem.textContent = there
            ? "There is one of this name."
            : NAME.test(name)
              ? ""
              : "Small letters, digits, - and _ only, beginning with a letter or a digit.";
          if (problem.textContent) return;
          drafts.set(name, this.#text(this.#name in OTHERS ? "summary" : this.#name));
          field.value = "";
          this.#choose(name);
          this.#say("This is a copy. Change it, try it, and save it.");
          this.#field.focus();
          this.#field.setSelectionRange(0, 0);
          this.#field.scrollTop = 0;
        },
      },
      el(
        "div.row.bottom",
        {},
        el("label.field.grow", {}, "A new one, called", field),
        el("button", { type: "submit" }, "Add"),
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
    const text = this.#field.value;
    this.#save.disabled = true;
    try {
      const saved = await api.put(`/api/prompts/${encodeURIComponent(name)}`, { text }, NO_USER);
      this.#saved.set(name, saved);
      if (drafts.get(name) === text) drafts.delete(name);
      if (name !== this.#name) return this.#drawList();
      this.#show();
      const used = name in OTHERS ? "" : " To use it, choose it as the summary prompt in Settings.";
      this.#say(`Saved as version ${number(saved.version)}.${used}`);
      this.#field.focus(); // the Save button is now disabled
    } catch (error) {
      if (name === this.#name) this.#complain(error.message);
    }
    this.#state();
  }

  async #remove() {
    const name = this.#name;
    const text = "All its saved versions are deleted, for everyone who uses this server. If Recap comes with a prompt of this name, that text is used again.";
    if (!(await confirmed(`Delete the prompt “${name}”?`, text, "Delete"))) return;
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

  #say(text) {
    this.#note.className = "small";
    this.#note.textContent = text;
    this.#field.removeAttribute("aria-invalid");
  }

  #complain(text, ...more) {
    this.#note.className = "small problem";
    this.#note.replaceChildren(text, " ", ...more);
    if (!more.length) this.#field.setAttribute("aria-invalid", "true");
  }

  /** Update which buttons are enabled, and explain why a prompt can't be tried. */
  #state() {
    const draft = drafts.has(this.#name);
    this.#save.disabled = !draft;
    this.#back.hidden = !draft;
    this.#delete.hidden = this.#saved.get(this.#name)?.source !== "stored";
    this.#back.textContent = this.#saved.has(this.#name) ? "Back to the saved text" : "Discard it";
    const why =
      this.#name in OTHERS
        ? "Only summary prompts can be tried."
        : shown.temporary
          ? "A temporary chat has no summary to try it on."
          : shown.sessionId === null
            ? "Open a chat first, to try the prompt on it."
            : "";
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
    this.#tryNote.textContent = "The mini model reads this chat";
    this.#result.replaceChildren();
    let said = "Nothing was stored.";
    let failed = false;
    try {
      const text = this.#field.value;
      const options = { signal: trying.signal };
      const [current, preview, ready] = await Promise.all([
        api.get(path, {}, options),
        api.post(`${path}/preview`, { text }, options),
        api.get("/health/ready", {}, NO_USER),
      ]);
      if (ready.model.builtin)
        said = "The built-in model follows no instructions, so every prompt gives the same result. Nothing was stored.";
      this.#result.append(comparison(current.latest, preview));
      this.#result.scrollIntoView({ block: "nearest" });
    } catch (error) {
      failed = error.name !== "AbortError";
      said = failed ? error.message : "Cancelled. Nothing was stored.";
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
  const from = preview.since ? `going on from version ${number(preview.since)}` : "from the first message on";
  const now = latest ? `version ${number(latest.version)}, ${origin(latest)}, ${number(latest.tokens)} tokens` : "no summary yet";
  const changes = el("div.stack");
  render(html`<${Differences} before=${latest?.sections ?? EMPTY} after=${preview.sections} />`, changes);
  return el("section.stack", { "aria-label": "The summary with this prompt" },
    el("h3", {}, "The summary with this prompt"),
    el("p.muted.small", {}, `By ${modelName(preview.model)}, ${from}, ${number(preview.tokens)} tokens. Marked is what differs from now: ${now}.`),
    changes,
  );
}

function origin({ author, prompt, restores }) {
  if (author === "person") return "written by you";
  return author === "rollback" ? `which brought version ${number(restores)} back` : `prompt ${prompt}`;
}
