// Manage memories: search, sort, correct and forget the person's facts from all chats; and export, import or erase all
// of the person's data (person_data.js).
//
// Guarantee: forgetting several facts affects only facts that are selected and visible, never those a filter hides.

import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { button, el } from "../page/dom.js";
import { html, render } from "../page/html.js";
import { CATEGORIES } from "../memory/fact_form.js";
import { FactList } from "../memory/facts.js";
import { forgetFacts } from "../memory/forget.js";
import { personData } from "./person_data.js";
import { emit, on, settings } from "../page/state.js";
import { text } from "../page/texts.js";

const PAGE = 100;
const SEARCH_DELAY = 200; // milliseconds after the last key before a search starts
const ORDERS = {
  newest: (facts) => [...facts].sort((a, b) => b.id - a.id),
  importance: (facts) => [...facts].sort((a, b) => b.importance - a.importance || b.id - a.id),
};

let opened = null; // the open dialog

export async function openManage() {
  opened = new Manager();
  await openDialog(text("page.manage_memories"), (close) => opened.nodes(close), { wide: true });
  opened = null;
}

for (const event of ["memory", "turn", "person"]) on(event, () => opened?.read({ keep: true }));

class Manager {
  #facts = []; // newest first, as the API returns them
  #cursor = null; // to facts that are not loaded yet
  #room = PAGE; // the maximum number of facts shown
  #total = null; // how many facts match; null if that is not known
  #titles = new Map(); // of chats, by id
  #selected = new Set();
  #shown = [];
  #asked = 0; // counts requests, to ignore responses to earlier ones
  #close;

  #search = el("input", {
    type: "search",
    placeholder: text("dialogs.manage.search"),
    "aria-label": text("dialogs.manage.search"),
    autocomplete: "off",
    maxLength: 2000,
    autofocus: true,
  });
  #category = choice(
    text("dialogs.manage.category"),
    [["", text("dialogs.manage.all_categories")], ...Object.entries(CATEGORIES).map(([value, label]) => [value, capital(label)])],
    () => this.read(),
  );
  #order = choice(
    text("dialogs.manage.order"),
    [
      ["newest", text("dialogs.manage.newest")],
      ["importance", text("dialogs.manage.most_important")],
    ],
    () => this.read(),
  );
  #all = el("input", { type: "checkbox", onchange: () => this.#selectAll() });
  #forget = button(text("dialogs.manage.forget"), () => this.#forgetSelected(), { kind: "danger", disabled: true });
  #count = el("p.muted.small", { role: "status" });
  #note = el("div.manage-note", {});
  #more = button(text("dialogs.manage.show_more"), () => this.#showMore(), { hidden: true });
  #list = el("div");

  nodes(close) {
    this.#close = close;
    let timer;
    this.#search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.read(), SEARCH_DELAY);
    });
    this.#list.addEventListener("keydown", (event) => {
      if (event.key !== " " || !event.target.matches("li")) return;
      event.preventDefault();
      event.target.querySelector("input[type=checkbox]")?.click();
    });
    this.read();
    return [
      personData(close),
      el(
        "div.manage-tools",
        {},
        el("div.manage-filters", {}, this.#search, this.#category, this.#order),
        el("div.row", {}, el("label.check", {}, this.#all, text("dialogs.manage.select_all")), el("span.grow", {}), this.#forget),
      ),
      this.#count,
      this.#note,
      this.#list,
      el("div.row.center", {}, this.#more),
    ];
  }

  // -- reading

  /** Reload the facts.  With `keep`, the number of facts shown and the selection stay the same. */
  async read({ keep = false } = {}) {
    const mine = ++this.#asked;
    if (!keep) {
      this.#room = PAGE;
      this.#selected.clear();
    }
    this.#say();
    if (!this.#facts.length) this.#count.textContent = text("dialogs.manage.loading");
    try {
      const found = [];
      let cursor;
      do {
        const page = await this.#page(cursor);
        if (mine !== this.#asked) return;
        found.push(...page.items);
        cursor = page.next_cursor;
      } while (cursor && (found.length < this.#room || this.#order.value !== "newest"));
      if (!cursor) this.#total = found.length;
      else this.#total = this.#filtered() ? null : await this.#countAll();
      if (mine !== this.#asked) return;
      this.#facts = found;
      this.#cursor = cursor;
      await this.#draw(mine);
    } catch (error) {
      if (mine === this.#asked)
        this.#say(
          error.message,
          button(text("page.try_again"), () => this.read({ keep: true })),
        );
    }
  }

  #page(cursor) {
    return api.get("/api/facts", { q: this.#search.value.trim(), category: this.#category.value, limit: PAGE, cursor });
  }

  async #countAll() {
    const kept = await api.get(api.personPath(settings.user), {}, { user: false });
    return kept.facts;
  }

  #filtered() {
    return this.#search.value.trim() !== "" || this.#category.value !== "";
  }

  async #showMore() {
    const mine = ++this.#asked;
    const last = this.#shown.at(-1);
    this.#more.disabled = true;
    try {
      if (this.#cursor && this.#facts.length <= this.#room) {
        const page = await this.#page(this.#cursor);
        if (mine !== this.#asked) return;
        this.#facts.push(...page.items);
        this.#cursor = page.next_cursor;
      }
      this.#room += PAGE;
      await this.#draw(mine);
      const next = this.#shown[this.#shown.findIndex((fact) => fact.id === last?.id) + 1];
      this.#list.querySelector(`[data-fact="${next?.id}"]`)?.focus();
    } catch (error) {
      if (mine === this.#asked) this.#say(error.message);
    } finally {
      this.#more.disabled = false;
    }
  }

  async #draw(mine) {
    const facts = ORDERS[this.#order.value](this.#facts).slice(0, this.#room);
    await this.#readTitles(facts);
    if (mine === this.#asked) this.#drawn(facts);
  }

  /** Load the titles of the facts' chats.  Both lists begin with the newest, so a few calls are enough. */
  async #readTitles(facts) {
    const missing = new Set(facts.map((fact) => fact.session_id).filter((id) => id && !this.#titles.has(id)));
    let cursor;
    while (missing.size) {
      const page = await api.get("/api/sessions", { limit: 100, cursor });
      for (const session of page.items) {
        this.#titles.set(session.id, session.title || text("dialogs.manage.untitled_chat"));
        missing.delete(session.id);
      }
      cursor = page.next_cursor;
      if (!cursor) return;
    }
  }

  // -- what is shown and selected

  #drawn(facts) {
    this.#shown = facts;
    this.#drawList();
    const ids = new Set(facts.map((fact) => fact.id));
    for (const id of this.#selected) if (!ids.has(id)) this.#selected.delete(id);
    this.#more.hidden = !this.#cursor && this.#facts.length <= this.#room;
    this.#count.textContent = facts.length ? this.#counted(facts.length) : "";
    if (!facts.length) this.#sayEmpty();
    else this.#say();
    this.#tally();
  }

  #counted(shown) {
    if (this.#more.hidden) return text("dialogs.manage.count", { count: shown });
    if (this.#total === null) return text("dialogs.manage.newest_found", { shown });
    const key = this.#order.value === "newest" ? "dialogs.manage.newest_of" : "dialogs.manage.most_important_of";
    return text(key, { shown, total: this.#total });
  }

  #drawList() {
    const list = html`
      <${FactList}
        label=${text("dialogs.manage.facts")}
        facts=${this.#shown}
        sessionTitle=${(id) => this.#titles.get(id) ?? text("dialogs.manage.untitled_chat")}
        before=${(fact) => this.#checkBox(fact)}
        leave=${() => this.#close()}
        changed=${(fact) => this.#changed(fact)}
      />
    `;
    render(list, this.#list);
  }

  #checkBox({ id, text: fact }) {
    const choose = ({ target }) => {
      if (target.checked) this.#selected.add(id);
      else this.#selected.delete(id);
      this.#tally();
    };
    const label = text("dialogs.manage.select", { fact });
    return html`<input type="checkbox" class="fact-check" checked=${this.#selected.has(id)} aria-label=${label} onChange=${choose} />`;
  }

  #changed(fact) {
    this.#facts = this.#facts.map((one) => (one.id === fact.id ? fact : one));
    this.#drawn(ORDERS[this.#order.value](this.#facts).slice(0, this.#room));
    emit("memory");
  }

  #selectAll() {
    for (const { id } of this.#shown) {
      if (this.#all.checked) this.#selected.add(id);
      else this.#selected.delete(id);
    }
    this.#drawList();
    this.#tally();
  }

  #tally() {
    const chosen = this.#selected.size;
    this.#all.disabled = !this.#shown.length;
    this.#all.checked = chosen > 0 && chosen === this.#shown.length;
    this.#all.indeterminate = chosen > 0 && chosen < this.#shown.length;
    this.#forget.disabled = !chosen;
    this.#forget.textContent = chosen ? text("dialogs.manage.forget_selected", { count: chosen }) : text("dialogs.manage.forget");
  }

  async #forgetSelected() {
    const facts = this.#shown.filter((fact) => this.#selected.has(fact.id));
    try {
      if (!(await forgetFacts(facts))) return;
      this.#selected.clear();
      this.#search.focus();
    } catch (error) {
      this.#say(error.message);
    }
  }

  #say(words = "", ...more) {
    this.#note.replaceChildren(...(words ? [el("p.notice.error", { role: "alert" }, words, " ", more)] : []));
  }

  #sayEmpty() {
    this.#note.replaceChildren(
      this.#filtered()
        ? el(
            "div.manage-empty",
            {},
            el("p", {}, text("dialogs.manage.no_match")),
            button(text("dialogs.manage.show_all"), () => this.#clear()),
          )
        : el(
            "div.manage-empty",
            {},
            el("p", {}, text("dialogs.manage.empty", { person: settings.user })),
            el("p.muted.small", {}, text("dialogs.manage.empty_hint")),
          ),
    );
  }

  #clear() {
    this.#search.value = this.#category.value = "";
    this.#search.focus();
    this.read();
  }
}

const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

function choice(label, options, onchange) {
  return el(
    "select",
    { "aria-label": label, onchange },
    options.map(([value, label]) => el("option", { value }, label)),
  );
}
