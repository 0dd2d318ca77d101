// Manage memories: search, sort, correct and forget the person's facts from all chats; and export, import or erase all
// of the person's data (person_data.js).
//
// Guarantee: forgetting several facts affects only facts that are selected and visible, never those a filter hides.

import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { el } from "../page/dom.js";
import { Component, createRef, html, render } from "../page/html.js";
import { CATEGORIES } from "../memory/fact_form.js";
import { FactList } from "../memory/facts.js";
import { forgetFacts } from "../memory/forget.js";
import { Trouble } from "../memory/trouble.js";
import { personData } from "./person_data.js";
import { emit, on, settings } from "../page/state.js";
import { text } from "../page/texts.js";

const PAGE = 100;
const SEARCH_DELAY = 200; // milliseconds after the last key before a search starts
const ALL = { q: "", category: "" };

let opened = null; // the facts in the open dialog

export async function openManage() {
  const facts = el("div.stack");
  const fill = (close) => {
    render(html`<${Facts} leave=${close} />`, facts);
    return [personData(close), facts];
  };
  await openDialog(text("page.manage_memories"), fill, { wide: true });
  render(null, facts);
}

for (const event of ["memory", "turn", "person"]) on(event, () => opened?.read());

class Facts extends Component {
  search = createRef();
  list = createRef();
  titles = new Map(); // of chats, by id
  asked = 0; // counts requests, to ignore responses to earlier ones
  state = {
    ...ALL,
    order: "newest", // or "importance"
    room: PAGE, // the maximum number of facts shown
    facts: null, // null: not loaded yet
    total: null, // how many facts match; null if that is not known
    selected: new Set(), // ids; some may not be visible any more
    trouble: {}, // {message, again}
  };

  componentDidMount() {
    opened = this;
    this.read();
  }

  componentWillUnmount() {
    opened = null;
  }

  componentDidUpdate(props, { room }) {
    if (this.state.room > room) this.list.current.querySelectorAll("[data-fact]")[room]?.focus();
  }

  // -- reading

  /** Load the facts, and show as many as there is `room` for. */
  read = async (room = this.state.room) => {
    const mine = ++this.asked;
    try {
      const loaded = await this.load(room);
      if (mine === this.asked) this.setState({ ...loaded, room, trouble: {} });
    } catch ({ message }) {
      if (mine === this.asked) this.setState({ trouble: { message, again: () => this.read(room) } });
    }
  };

  async load(room) {
    const { q, category, order } = this.state;
    let facts = [];
    let cursor;
    do {
      const page = await api.get("/api/facts", { q: q.trim(), category, limit: PAGE, cursor });
      facts.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor && (facts.length < room || order === "importance"));
    let total = facts.length;
    if (cursor) total = this.filtered ? null : (await api.get(api.personPath(settings.user), {}, { user: false })).facts;
    if (order === "importance") facts.sort((a, b) => b.importance - a.importance || b.id - a.id);
    facts = facts.slice(0, room);
    await this.readTitles(facts);
    return { facts, total };
  }

  /** Load the titles of the facts' chats.  Both lists begin with the newest, so a few calls are enough. */
  async readTitles(facts) {
    const missing = new Set(facts.map((fact) => fact.session_id).filter((id) => id && !this.titles.has(id)));
    let cursor;
    while (missing.size) {
      const page = await api.get("/api/sessions", { limit: 100, cursor });
      for (const session of page.items) {
        this.titles.set(session.id, session.title);
        missing.delete(session.id);
      }
      cursor = page.next_cursor;
      if (!cursor) return;
    }
  }

  get filtered() {
    return this.state.q.trim() !== "" || this.state.category !== "";
  }

  /** Show other facts, as a search or a filter says, with none selected. */
  filter(changes, delay = 0) {
    this.setState({ ...changes, selected: new Set() });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.read(PAGE), delay);
  }

  showAll = () => {
    this.filter(ALL);
    this.search.current.focus();
  };

  // -- selecting and forgetting

  select(ids, wanted) {
    const selected = new Set(this.state.selected);
    for (const id of ids) wanted ? selected.add(id) : selected.delete(id);
    this.setState({ selected });
  }

  get chosen() {
    return (this.state.facts ?? []).filter((fact) => this.state.selected.has(fact.id));
  }

  forget = async () => {
    try {
      if (await forgetFacts(this.chosen)) this.search.current.focus();
    } catch ({ message }) {
      this.setState({ trouble: { message } });
    }
  };

  keys = (event) => {
    if (event.key !== " " || !event.target.matches("li")) return;
    event.preventDefault();
    event.target.querySelector("input[type=checkbox]")?.click();
  };

  changed = (fact) => {
    this.setState(({ facts }) => ({ facts: facts.map((one) => (one.id === fact.id ? fact : one)) }));
    emit("memory");
  };

  // -- what is shown

  render({ leave }, { facts, room, total, trouble }) {
    const more = facts?.length === room && total !== room;
    return html`
      ${this.tools()}
      <p class="muted small" role="status">${this.counted(more)}</p>
      <${Trouble} ...${trouble} />
      ${facts?.length === 0 && this.empty()}
      <div ref=${this.list} onKeyDown=${this.keys}>
        <${FactList}
          label=${text("dialogs.manage.facts")}
          facts=${facts ?? []}
          sessionTitle=${(id) => this.titles.get(id) || text("page.untitled_chat")}
          before=${this.checkBox}
          leave=${leave}
          changed=${this.changed}
        />
      </div>
      ${more &&
      html`
        <div class="row center">
          <button type="button" onClick=${() => this.read(room + PAGE)}>${text("dialogs.manage.show_more")}</button>
        </div>
      `}
    `;
  }

  tools() {
    const { q, category, order, facts } = this.state;
    const { length } = this.chosen;
    const label = text("dialogs.manage.search");
    const all = (facts ?? []).map((fact) => fact.id);
    return html`
      <div class="manage-tools">
        <div class="manage-filters">
          <input
            type="search"
            ref=${this.search}
            value=${q}
            placeholder=${label}
            aria-label=${label}
            autocomplete="off"
            maxlength="2000"
            autofocus
            onInput=${(event) => this.filter({ q: event.target.value }, SEARCH_DELAY)}
          />
          <select
            aria-label=${text("dialogs.manage.category")}
            value=${category}
            onChange=${(event) => this.filter({ category: event.target.value })}
          >
            <option value="">${text("dialogs.manage.all_categories")}</option>
            ${Object.entries(CATEGORIES).map(([value, name]) => html`<option value=${value}>${capital(name)}</option>`)}
          </select>
          <select
            aria-label=${text("dialogs.manage.order")}
            value=${order}
            onChange=${(event) => this.filter({ order: event.target.value })}
          >
            <option value="newest">${text("dialogs.manage.newest")}</option>
            <option value="importance">${text("dialogs.manage.most_important")}</option>
          </select>
        </div>
        <div class="row">
          <label class="check">
            <input
              type="checkbox"
              disabled=${!all.length}
              checked=${length > 0 && length === all.length}
              indeterminate=${length > 0 && length < all.length}
              onChange=${(event) => this.select(all, event.target.checked)}
            />
            ${text("dialogs.manage.select_all")}
          </label>
          <span class="grow"></span>
          <button type="button" class="danger" disabled=${!length} onClick=${this.forget}>
            ${length ? text("dialogs.manage.forget_selected", { count: length }) : text("dialogs.manage.forget")}
          </button>
        </div>
      </div>
    `;
  }

  counted(more) {
    const { facts, order, total, trouble } = this.state;
    if (!facts) return !trouble.message && text("dialogs.manage.loading");
    const shown = facts.length;
    if (!more) return shown > 0 && text("dialogs.manage.count", { count: shown });
    if (total === null) return text("dialogs.manage.newest_found", { shown });
    return text(order === "newest" ? "dialogs.manage.newest_of" : "dialogs.manage.most_important_of", { shown, total });
  }

  checkBox = ({ id, text: fact }) => html`
    <label class="check">
      <input
        type="checkbox"
        checked=${this.state.selected.has(id)}
        aria-label=${text("dialogs.manage.select", { fact })}
        onChange=${(event) => this.select([id], event.target.checked)}
      />
    </label>
  `;

  empty() {
    if (this.filtered)
      return html`
        <div class="manage-empty">
          <p>${text("dialogs.manage.no_match")}</p>
          <button type="button" onClick=${this.showAll}>${text("dialogs.manage.show_all")}</button>
        </div>
      `;
    return html`
      <div class="manage-empty">
        <p>${text("dialogs.manage.empty", { person: settings.user })}</p>
        <p class="muted small">${text("dialogs.manage.empty_hint")}</p>
      </div>
    `;
  }
}

const capital = (words) => `${words[0].toUpperCase()}${words.slice(1)}`;
