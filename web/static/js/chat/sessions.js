// The left panel: the pinned chats and the others, newest first, or those that are archived; and a search through all.
//
// Guarantee: archiving or deleting several chats affects only those that are selected and visible.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce, byId } from "../page/dom.js";
import { Edge } from "../page/edge.js";
import { Component, Trouble, html, render } from "../page/html.js";
import { Rows } from "../page/rows.js";
import { emit, forgetChat, on, shown, timezone } from "../page/state.js";
import { LOCALE, clock, dayName, text, when } from "../page/words.js";
import { jumpTo, newChat, openSession } from "./conversation.js";
import { Hit } from "./hit.js";
import { SessionRow, named } from "./session_row.js";

const PAGE = 30;
const SEARCH_DELAY = 180; // milliseconds after the last key before a search starts

const search = byId("search");

export function startSessions() {
  byId("new-chat").addEventListener("click", () => newChat());
  byId("temporary-chat").addEventListener("click", () => newChat({ temporary: true }));
  render(html`<${Sessions} />`, byId("session-list"));
}

class Sessions extends Component {
  state = {
    sessions: [],
    more: null, // cursor to older chats
    archived: false, // whether the list shows the archived chats
    selected: [], // ids
    found: null, // {titles, hits} of a search
  };

  componentDidMount() {
    byId("archived-chats").addEventListener("click", ({ currentTarget }) => {
      const archived = !this.state.archived;
      currentTarget.setAttribute("aria-pressed", String(archived));
      search.value = "";
      this.setState({ archived, sessions: [], found: null }, this.read);
    });
    let timer;
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(this.read, SEARCH_DELAY);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      byId("session-list").querySelector("[data-row]")?.focus();
    });
    for (const event of ["begun", "turn", "sessions", "summarised", "person"]) on(event, this.read);
    on("session", () => this.forceUpdate());
    this.read();
  }

  // -- reading

  /** Read the list, or what a search finds.  An answer to an earlier question is ignored. */
  async load(isLast) {
    const q = search.value.trim();
    const found = await (q ? this.find(q) : this.newest()).catch((error) => {
      if (q || !this.state.sessions.length) throw error; // else the list stays, which may be old
    });
    if (isLast()) this.setState(found);
  }

  async newest() {
    const { archived, sessions } = this.state;
    const limit = Math.max(PAGE, Math.min(100, sessions.length));
    const [pinned, page] = await Promise.all([
      api.all("/api/sessions", { archived, pinned: true }),
      api.get("/api/sessions", { archived, pinned: false, limit }),
    ]);
    const listed = [...pinned, ...page.items];
    const ids = listed.map(({ id }) => id);
    const selected = this.state.selected.filter((id) => ids.includes(id));
    return { sessions: listed, more: page.next_cursor, selected, found: null };
  }

  async find(q) {
    const [titles, messages] = await Promise.all([
      api.get("/api/sessions", { q, limit: 5 }),
      api.get("/api/search", { q, limit: 20, timezone: timezone() }),
    ]);
    return { found: { titles: titles.items, hits: messages.results } };
  }

  readMore = async () => {
    const { archived, more: cursor } = this.state;
    const mine = this.last;
    const page = await api.get("/api/sessions", { archived, pinned: false, limit: PAGE, cursor });
    if (mine !== this.last) return;
    this.setState(({ sessions }) => ({ sessions: [...sessions, ...page.items], more: page.next_cursor }));
  };

  // -- what the person does

  select = (id, chosen) =>
    this.setState(({ selected }) => ({ selected: [...selected.filter((one) => one !== id), ...(chosen ? [id] : [])] }));

  archive = (chats) => this.change(chats, { archived: !this.state.archived });
  pin = (chat) => this.change([chat], { pinned: !chat.pinned });
  change = (chats, changes) => this.each(chats, (id) => api.patch(api.sessionPath(id), changes));

  /** Call `deed(id)` for each of these sessions.  One that is gone meanwhile is left out. */
  each(chats, deed) {
    return this.attempt(async () => {
      for (const { id } of chats) {
        await deed(id).catch(api.unlessGone);
        this.select(id, false);
      }
      announce(text("chat.sessions.done"));
      emit("sessions");
    }, this.read);
  }

  erase = async (chats) => {
    const title = text("chat.sessions.delete_title", { count: chats.length });
    const what =
      chats.length === 1
        ? text("chat.sessions.delete_one", { title: named(chats[0]), count: chats[0].message_count })
        : text("chat.sessions.delete_many");
    if (!(await confirmed(title, what, text("page.delete")))) return;
    await this.each(chats, async (id) => {
      await api.del(api.sessionPath(id));
      forgetChat(id);
    });
    if (chats.some(({ id }) => id === shown.sessionId)) newChat();
  };

  // -- what is shown

  render(_, { sessions, archived, selected, found, trouble }) {
    const visible = found ? found.titles : sessions;
    const chosen = visible.filter(({ id }) => selected.includes(id));
    return html`
      <div class="row session-bar" hidden=${!chosen.length}>
        <span class="grow" role="status">${text("chat.sessions.selected", { count: chosen.length })}</span>
        <button onClick=${() => this.archive(chosen)}>
          ${text(archived ? "chat.sessions.restore" : "chat.sessions.archive")}
        </button>
        <button class="danger" onClick=${() => this.erase(chosen)}>${text("page.delete")}</button>
      </div>
      <${Rows} class="sessions-list ${chosen.length ? "selecting" : ""}">
        <${Trouble} ...${trouble} />
        ${!trouble?.message && (found ? this.results(found) : this.listed(sessions))}
      <//>
    `;
  }

  listed(sessions) {
    const { archived, more } = this.state;
    const none = archived ? "chat.sessions.none_archived" : "chat.sessions.none";
    if (!sessions.length) return html`<p class="list-note">${text(none)}</p>`;
    const groups = [...Map.groupBy(sessions, groupName)].map(([name, rows]) => this.group(name, rows.map(this.row)));
    return [groups, more && html`<${Edge} key=${more} more=${this.readMore} />`];
  }

  results({ titles, hits }) {
    const none = html`<p class="list-note" role="status">${text("chat.sessions.not_found")}</p>`;
    if (!titles.length && !hits.length) return none;
    const hit = (one) => html`<li><${Hit} hit=${one} open=${() => jumpTo(one.session_id, one.message_id)} /></li>`;
    return [
      titles.length > 0 && this.group(text("chat.sessions.chats"), titles.map(this.row)),
      hits.length > 0 && this.group(text("chat.sessions.messages"), hits.map(hit)),
    ];
  }

  group = (name, rows) => html`<section key=${name}><h3>${name}</h3><ul>${rows}</ul></section>`;

  row = (session) => html`
    <${SessionRow}
      key=${session.id}
      session=${session}
      time=${isRecent(session.updated_at) ? clock(session.updated_at) : when(session.updated_at)}
      current=${session.id === shown.sessionId}
      selected=${this.state.selected.includes(session.id)}
      open=${openSession}
      select=${this.select}
      pin=${this.pin}
      erase=${this.erase}
    />
  `;
}

function groupName({ pinned, updated_at: iso }) {
  if (pinned) return text("chat.sessions.pinned");
  if (isRecent(iso)) return dayName(iso);
  const days = (Date.now() - new Date(iso)) / 86_400_000;
  if (days < 31) return text(days < 7 ? "chat.sessions.this_week" : "chat.sessions.this_month");
  return new Intl.DateTimeFormat(LOCALE, { month: "long", year: "numeric" }).format(new Date(iso));
}

const isRecent = (iso) => [text("page.today"), text("page.yesterday")].includes(dayName(iso));
