// What Recap knows about a person, in tabs: in a minute (overview.js), all facts to search, correct and forget, and all of
// their data to export, import or erase (person_data.js).
//
// Guarantee: forgetting several facts affects only facts that are selected and visible, never those a filter hides.
import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { Component, Select, Trouble, createRef, html } from "../page/html.js";
import { CATEGORIES } from "../memory/fact_form.js";
import { FactList } from "../memory/facts.js";
import { forgetFacts } from "../memory/forget.js";
import { Overview } from "./overview.js";
import { PersonData, Tidy } from "./person_data.js";
import { Edge } from "../page/rows.js";
import { emit, holder, on, whose } from "../page/state.js";
import { Tabs } from "../page/tabs.js";
import { text } from "../page/words.js";

const PAGE = 100;
const SEARCH_DELAY = 200; // milliseconds after the last key before a search starts
const ALL = { q: "", category: "", day: "" };
const ORDERS = ["newest", "importance"];

let opened = null; // the facts in the open dialog

/** `tab` is "overview", "facts" or "data". */
export function openManage(tab = "overview") {
  return openDialog(text("page.manage_memories"), (close) => html`<${Known} tab=${tab} leave=${close} />`, { wide: true });
}

class Known extends Component {
  state = { tab: this.props.tab };

  render({ leave }, { tab }) {
    const parts = {
      overview: () => tab === "overview" && html`<${Overview} leave=${leave} />`,
      facts: () => html`<${Facts} leave=${leave} />`,
      data: () => html`<${PersonData} leave=${leave} />${tab === "data" && html`<${Tidy} />`}`,
    };
    const names = Object.keys(parts).filter((name) => name !== "data" || holder.may.change);
    return html`<${Tabs} label=${text("page.manage_memories")} names=${names.map((name) => [name, text(`dialogs.manage.tabs.${name}`)])}
      chosen=${tab} choose=${(next) => this.setState({ tab: next })}>${(name) => parts[name]()}<//>`;
  }
}

for (const event of ["memory", "turn", "person"]) on(event, () => opened?.read());

class Facts extends Component {
  search = createRef();
  state = {
    ...ALL, // day: on which what is shown was known; empty: now
    order: "newest",
    room: PAGE, // the maximum number of facts shown
    facts: null, // all that match, newest first; null: not loaded yet
    titles: new Map(), // of chats, by id
    trouble: {},
    selected: new Set(), // ids; some may not be visible any more
  };

  componentWillUnmount() {
    opened = null;
  }

  // -- reading

  async load() {
    opened = this;
    const { q, category, day } = this.state;
    const as_of = day && new Date(`${day}T23:59:59`).toISOString();
    const [facts, chats] = await Promise.all([api.all("/api/facts", { q: q.trim(), category, as_of }), api.all("/api/sessions")]);
    return { facts, titles: new Map(chats.map(({ id, title }) => [id, title])) };
  }

  /** The facts that are shown. */
  get listed() {
    const { order, room } = this.state;
    const facts = [...(this.state.facts ?? [])];
    if (order === "importance") facts.sort((a, b) => b.importance - a.importance || b.id - a.id);
    return facts.slice(0, room);
  }

  /** Show other facts, as a search or a filter says, with none selected. */
  filter(changes) {
    this.setState({ ...changes, room: PAGE, selected: new Set() });
    clearTimeout(this.timer);
    this.timer = setTimeout(this.read, SEARCH_DELAY);
  }

  pick = ({ target: { name, value } }) => this.filter({ [name]: value });

  showAll = () => {
    this.filter(ALL);
    this.search.current.focus();
  };

  // -- selecting and forgetting

  select(ids, wanted) {
    const { selected } = this.state;
    this.setState({ selected: wanted ? selected.union(new Set(ids)) : selected.difference(new Set(ids)) });
  }

  get chosen() {
    return this.listed.filter((fact) => this.state.selected.has(fact.id));
  }

  forget = () =>
    this.attempt(async () => {
      if (await forgetFacts(this.chosen)) this.search.current.focus();
    });

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

  render({ leave }, { facts, titles, room, trouble }) {
    return html`
      ${this.tools()}
      <p class="muted small" role="status">${this.counted()}</p>
      <${Trouble} ...${trouble} />
      ${facts?.length === 0 && this.empty()}
      <div onKeyDown=${this.keys}>
        <${FactList}
          label=${text("dialogs.manage.facts")}
          facts=${this.listed}
          sessionTitle=${(id) => titles.get(id) || text("page.untitled_chat")}
          before=${this.checkBox}
          leave=${leave}
          changed=${this.changed}
        />
      </div>
      ${facts?.length > room && html`<${Edge} key=${room} more=${() => this.setState({ room: room + PAGE })} />`}
    `;
  }

  tools() {
    const { q, category, order, day } = this.state;
    const { length } = this.chosen;
    const label = text("dialogs.manage.search");
    const all = this.listed.map((fact) => fact.id);
    const categories = [["", text("dialogs.manage.all_categories")], ...Object.entries(CATEGORIES).map(([value, name]) => [value, capital(name)])];
    const orders = ORDERS.map((one) => [one, text(`dialogs.manage.${one}`)]);
    return html`<div class="manage-tools">
        <div class="row wrap manage-filters">
          <input type="search" placeholder=${label} aria-label=${label} autocomplete="off" maxlength="2000"
            ref=${this.search} name="q" value=${q} onInput=${this.pick} />
          <${Select} name="category" options=${categories} aria-label=${text("dialogs.manage.category")} value=${category} onChange=${this.pick} />
          <${Select} name="order" options=${orders} aria-label=${text("dialogs.manage.order")} value=${order} onChange=${this.pick} />
          <label class="row small muted">${text("dialogs.manage.as_of")} <input type="date" name="day" value=${day} onChange=${this.pick} /></label>
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
          <button class="danger" disabled=${!length || Boolean(day)} onClick=${this.forget}>
            ${length ? text("dialogs.manage.forget_selected", { count: length }) : text("dialogs.manage.forget")}
          </button>
        </div>
      </div>`;
  }

  counted() {
    const { facts, order, room, trouble } = this.state;
    if (!facts) return !trouble?.message && text("dialogs.manage.loading");
    const count = facts.length;
    if (count > room) return text(`dialogs.manage.${order}_of`, { shown: room, total: count });
    return count > 0 && text("dialogs.manage.count", { count });
  }

  checkBox = ({ id, text: fact }) => html`<label class="check">
      <input
        type="checkbox"
        checked=${this.state.selected.has(id)}
        aria-label=${text("dialogs.manage.select", { fact })}
        onChange=${(event) => this.select([id], event.target.checked)}
      />
    </label>`;

  empty() {
    const { q, category, day } = this.state;
    const filtered = html`<p>${text("dialogs.manage.no_match")}</p>
      <button onClick=${this.showAll}>${text("dialogs.manage.show_all")}</button>`;
    const nothing = html`<p>${text("dialogs.manage.empty", { person: whose() })}</p>
      <p class="muted small">${text("dialogs.manage.empty_hint")}</p>`;
    return html`<div class="manage-empty">${q.trim() || category || day ? filtered : nothing}</div>`;
  }
}

const capital = (words) => `${words[0].toUpperCase()}${words.slice(1)}`;
