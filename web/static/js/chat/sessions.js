// The left panel: the pinned chats and the others, newest first, or those that are archived; and a search through all.
//
// Guarantee: archiving or deleting several chats affects only those that are selected and visible.
import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce, byId } from "../page/dom.js";
import { Component, Select, Trouble, createRef, html, render } from "../page/html.js";
import { Edge, Rows } from "../page/rows.js";
import { emit, holder, on, shown, space, timezone, whose } from "../page/state.js";
import { LOCALE, clock, dayName, text, when } from "../page/words.js";
import { readMemorySwitch } from "./composer.js";
import { jumpTo, newChat, openSession } from "./conversation.js";
import { OtherChats } from "./other_chats.js";
import { Hit, SessionRow, named } from "./session_row.js";
import { Spaces } from "./spaces.js";

const PAGE = 30;
const NAMED = 12; // chats that a question names
const SEARCH_DELAY = 180; // milliseconds after the last key before a search starts
const KINDS = ["message", "fact", "summary"];

/** `dialogs` open what the buttons below the list name. */
export const startSessions = (dialogs) => render(html`<${Sessions} ...${dialogs} />`, byId("session-list"));

class Sessions extends Component {
  search = createRef();
  state = {
    sessions: [],
    more: null, // cursor to older chats
    archived: false, // whether the list shows the archived chats
    selected: null, // ids; null: nothing is being selected
    found: null, // {titles, hits} of a search
    kind: "message", // what a search looks for, and since when
    after: "",
  };

  componentDidMount() {
    for (const event of ["turn", "sessions", "summarised", "person"]) on(event, this.read);
    on("begun", ({ sessionId }) => {
      if (sessionId === shown.sessionId) this.leaveArchive();
      else this.read();
    });
    on("session", (id) => (id === null ? this.leaveArchive() : this.forceUpdate()));
    this.read();
  }

  /** Show the chats that are not archived: a new one is among them. */
  leaveArchive = () => (this.state.archived ? this.setState({ archived: false, sessions: [] }, this.read) : this.read());

  seek = () => {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.read, SEARCH_DELAY);
  };

  keys = (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    byId("session-list").querySelector("[data-row]")?.focus();
  };

  narrow = ({ target: { name, value } }) => this.setState({ [name]: value }, this.read);

  toggleArchive = () => {
    this.search.current.value = "";
    this.setState(({ archived }) => ({ archived: !archived, sessions: [], found: null, selected: null }), this.read);
  };

  // -- reading

  /** Read the list, or what a search finds. */
  load() {
    const q = this.search.current.value.trim();
    return (q ? this.find(q) : this.newest()).catch((error) => {
      if (q || !this.state.sessions.length) throw error; // else the list stays, which may be old
    });
  }

  async newest() {
    const { archived, sessions } = this.state;
    const limit = Math.max(PAGE, Math.min(100, sessions.length));
    const [pinned, page] = await Promise.all([
      api.all("/api/sessions", { archived, pinned: true }),
      api.get("/api/sessions", { archived, pinned: false, limit }),
    ]);
    const listed = [...pinned, ...page.items];
    if (listed.length && this.whose !== whose()) await readMemorySwitch();
    if (listed.length) this.whose = whose();
    const ids = listed.map(({ id }) => id);
    const selected = this.state.selected?.filter((id) => ids.includes(id)) ?? null;
    return { sessions: listed, more: page.next_cursor, selected, found: null };
  }

  async find(q) {
    const { kind, after: day } = this.state;
    const after = day && new Date(`${day}T00:00`).toISOString();
    const [titles, messages] = await Promise.all([
      api.get("/api/sessions", { q, limit: 5, after }),
      api.get("/api/search", { q, kind, after, limit: 20, timezone: timezone() }),
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

  select = (id, chosen) => this.setState(({ selected }) => ({ selected: [...(selected ?? []).filter((one) => one !== id), ...(chosen ? [id] : [])] }));
  selectNone = () => this.setState({ selected: null });
  archive = (chats) => this.change(chats, { archived: !this.state.archived });
  pin = (chat) => this.change([chat], { pinned: !chat.pinned });
  change = (chats, changes) => this.each(chats, (id) => api.patch(api.sessionPath(id), changes));

  /** Call `deed(id)` for each of these sessions until one fails, and tell of those before.  One that is gone meanwhile is left out. */
  async each(chats, deed, told = (_) => null) {
    const done = [];
    const work = async () => {
      for (const { id } of chats) {
        await deed(id).catch(api.unlessGone);
        done.push(id);
        if (this.state.selected) this.select(id, false);
      }
    };
    const failure = await work().catch((error) => error);
    if (done.length) emit("sessions", told(done));
    if (failure) return this.attempt(() => Promise.reject(failure), this.read);
    this.selectNone();
    announce(text("chat.sessions.done"));
  }

  erase = async (chats) => {
    const title = text("chat.sessions.delete_title", { count: chats.length });
    const [one] = chats;
    const more = chats.length - NAMED;
    const names = html`<ul class="names">
      ${chats.slice(0, NAMED).map((chat) => html`<li class="cut">${named(chat)}</li>`)}
      ${more > 0 && html`<li>${text("chat.sessions.delete_more", { count: more })}</li>`}
    </ul>`;
    const what = chats.length === 1 ? text("chat.sessions.delete_one", { title: named(one), count: one.message_count }) : [names, text("chat.sessions.delete_many")];
    if (!(await confirmed(title, what, text("page.delete")))) return;
    await this.each(chats, (id) => api.del(api.sessionPath(id)), (gone) => ({ gone }));
  };

  // -- what is shown

  render({ openManage, openSettings }, { sessions, archived, selected, found, kind, after, trouble }) {
    const label = text("page.search_chats");
    const kinds = KINDS.map((name) => [name, text(`chat.sessions.kinds.${name}`)]);
    return html`<${Spaces} />
      <div class="sessions-actions">
        <button type="button" class="primary" id="new-chat" data-close-panel onClick=${() => newChat()}>${text("page.new_chat")}</button>
        <button type="button" id="temporary-chat" data-close-panel title=${text("page.temporary_chat_means")}
          onClick=${() => newChat({ temporary: true })}>${text("page.temporary_chat")}</button>
      </div>
      <input type="search" id="search" placeholder=${label} aria-label=${label} autocomplete="off" maxlength="2000"
        ref=${this.search} onInput=${this.seek} onKeyDown=${this.keys} />
      ${found &&
      html`<div class="row narrow">
        <${Select} name="kind" options=${kinds} aria-label=${text("chat.sessions.kind")} value=${kind} onChange=${this.narrow} />
        <input type="date" name="after" aria-label=${text("chat.sessions.after")} title=${text("chat.sessions.after")} value=${after} onChange=${this.narrow} />
      </div>`}
      <${Rows} class="sessions-list">
        <${Trouble} ...${trouble} />
        ${!trouble?.message && (found ? this.results(found) : this.listed(sessions))}
        ${!found && !archived && !space() && holder.may.tenant && html`<${OtherChats} />`}
      <//>
      <footer class="sessions-foot">
        <div class=${selected ? "covered" : ""}>
          <button type="button" class="quiet" id="open-manage" onClick=${openManage}>${text("page.manage_memories")}</button>
          <button type="button" class="quiet" id="archived-chats" aria-pressed=${String(archived)} onClick=${this.toggleArchive}>${text("page.archived_chats")}</button>
          <button type="button" class="quiet" id="open-settings" onClick=${openSettings}>${text("page.settings")}</button>
          ${api.signedIn() && html`<button type="button" class="quiet" id="sign-out" onClick=${api.signOut}>${text("page.sign_out")}</button>`}
        </div>
        ${selected && this.bar(found ? found.titles : sessions)}
      </footer>`;
  }

  /** What is done with the selected chats: it covers the buttons below the list, so that nothing moves. */
  bar(visible) {
    const chosen = visible.filter(({ id }) => this.state.selected.includes(id));
    const none = !chosen.length;
    return html`<div class="session-bar">
        <span class="row"><span class="grow" role="status">${text("chat.sessions.selected", { count: chosen.length })}</span>
          <button class="quiet" onClick=${this.selectNone}>${text("page.cancel")}</button></span>
        <span class="row">
          <button class="grow" disabled=${none} onClick=${() => this.archive(chosen)}>
            ${text(this.state.archived ? "chat.sessions.restore" : "chat.sessions.archive")}
          </button>
          <button class="danger grow" disabled=${none} onClick=${() => this.erase(chosen)}>${text("page.delete")}</button>
        </span>
      </div>`;
  }

  listed(sessions) {
    const { archived, more, busy } = this.state;
    const none = archived ? "chat.sessions.none_archived" : "chat.sessions.none";
    if (!sessions.length) return busy === false && html`<p class="list-note">${text(none)}</p>`;
    const groups = [...Map.groupBy(sessions, groupName)].map(([name, rows]) => this.group(name, rows.map(this.row)));
    return [groups, more && html`<${Edge} key=${more} more=${this.readMore} />`];
  }

  results({ titles, hits }) {
    const none = html`<p class="list-note" role="status">${text("chat.sessions.not_found")}</p>`;
    if (!titles.length && !hits.length) return none;
    const open = (one) => (one.document ? emit("longterm", "documents") : jumpTo(one.session_id, one.message_id));
    const hit = (one) => html`<li><${Hit} hit=${one} open=${() => open(one)} /></li>`;
    return [
      titles.length > 0 && this.group(text("chat.sessions.chats"), titles.map(this.row)),
      hits.length > 0 && this.group(text(`chat.sessions.kinds.${this.state.kind}`), hits.map(hit)),
    ];
  }

  group = (name, rows) => html`<section key=${name}><h3>${name}</h3><ul>${rows}</ul></section>`;

  row = (session) => html`<${SessionRow}
      key=${session.id}
      session=${session}
      time=${isRecent(session.updated_at) ? clock(session.updated_at) : when(session.updated_at)}
      current=${session.id === shown.sessionId}
      selecting=${this.state.selected !== null}
      selected=${this.state.selected?.includes(session.id)}
      open=${openSession}
      acts=${this}
    />`;
}

function groupName({ pinned, updated_at: iso }) {
  if (pinned) return text("chat.sessions.pinned");
  if (isRecent(iso)) return dayName(iso);
  const days = (Date.now() - Number(new Date(iso))) / 86_400_000;
  if (days < 31) return text(days < 7 ? "chat.sessions.this_week" : "chat.sessions.this_month");
  return new Intl.DateTimeFormat(LOCALE, { month: "long", year: "numeric" }).format(new Date(iso));
}

const isRecent = (iso) => [text("page.today"), text("page.yesterday")].includes(dayName(iso));
