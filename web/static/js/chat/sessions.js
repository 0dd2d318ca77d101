// The left panel: the pinned chats and the others, newest first, or those that are archived; and a search through all.
//
// Guarantee: archiving or deleting several chats affects only those that are selected and visible.

import * as api from "../page/api.js";
import { jumpTo, newChat, openSession } from "./conversation.js";
import { confirmed } from "../page/dialog.js";
import { announce, arrowKeys, button, byId, el, isEnter, put } from "../page/dom.js";
import { icon } from "../page/icons.js";
import { emit, on, shown, timezone } from "../page/state.js";
import { LOCALE, text } from "../page/texts.js";
import { clock, dayName, speaker, when } from "../page/words.js";

const PAGE = 30;
const LETTER = "[\\p{sc=Latn}\\p{sc=Cyrl}\\p{sc=Grek}\\p{N}]"; // of scripts that part words by spaces
const HIT_BEFORE = 40; // characters shown before the first word that was found
const SEARCH_DELAY = 180; // milliseconds after the last key before a search starts

const list = byId("session-list");
const search = byId("search");
let sessions = [];
let more = null; // cursor to older chats
let archived = false; // whether the list shows the archived chats
let renaming = null;
const selected = new Set(); // ids of sessions
const count = el("span.grow", { role: "status" });
const archive = button(text("chat.sessions.archive"), () => change([...selected], (path) => api.patch(path, { archived: !archived })));
const bar = el("div.row.session-bar", { hidden: true }, count, archive,
  button(text("page.delete"), () => erase(sessions.filter(({ id }) => selected.has(id))), { kind: "danger" }));
let asked = 0; // counts requests, to ignore responses to earlier ones
let settleKeys = () => {};
const rowsMade = new Map(); // by session: {says, item}
const groupsMade = new Map(); // by name: {heading, rows}

export function startSessions() {
  byId("new-chat").addEventListener("click", () => newChat());
  byId("temporary-chat").addEventListener("click", () => newChat({ temporary: true }));
  byId("archived-chats").addEventListener("click", ({ currentTarget }) => {
    archived = !archived;
    currentTarget.setAttribute("aria-pressed", String(archived));
    archive.textContent = text(archived ? "chat.sessions.restore" : "chat.sessions.archive");
    sessions = [];
    search.value = "";
    read();
  });
  list.before(bar);
  let timer;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search.value.trim() ? find : read, SEARCH_DELAY);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      stops()[0]?.focus();
    }
  });
  list.addEventListener("scroll", () => {
    if (more && list.scrollHeight - list.scrollTop - list.clientHeight < 200) readMore();
  });
  settleKeys = arrowKeys(list, stops);
  for (const event of ["begun", "turn", "sessions", "summarised", "person"]) on(event, () => search.value.trim() || read());
  on("session", () => search.value.trim() || draw());
  read();
}

const stops = () => [...list.querySelectorAll(".session-open, .hit")];

async function read() {
  const mine = ++asked;
  try {
    const limit = Math.max(PAGE, Math.min(100, sessions.length));
    const [pinned, page] = await Promise.all([
      api.all("/api/sessions", { archived, pinned: true }),
      api.get("/api/sessions", { archived, pinned: false, limit }),
    ]);
    if (mine !== asked) return;
    sessions = [...pinned, ...page.items];
    more = page.next_cursor;
    draw();
  } catch (error) {
    if (mine === asked && !sessions.length) trouble(error, read); // otherwise keep the old list
  }
}

async function readMore() {
  const cursor = more;
  more = null;
  const mine = asked;
  try {
    const page = await api.get("/api/sessions", { archived, pinned: false, limit: PAGE, cursor });
    if (mine !== asked) return;
    sessions.push(...page.items);
    more = page.next_cursor;
    draw();
  } catch {
    more = cursor; // scrolling further tries again
  }
}

function draw() {
  if (renaming && list.querySelector(".session input[type=text]")) return; // keep the form that is being edited
  for (const id of selected) if (!sessions.some((session) => session.id === id)) selected.delete(id);
  tally();
  if (!sessions.length) {
    list.replaceChildren(el("p.list-note", {}, text(archived ? "chat.sessions.none_archived" : "chat.sessions.none")));
    return;
  }
  const groups = [];
  for (const session of sessions) {
    const name = session.pinned ? text("chat.sessions.pinned") : groupName(session.updated_at);
    if (groups.at(-1)?.name !== name) groups.push({ name, items: [] });
    groups.at(-1).items.push(session);
  }
  const focused = document.activeElement?.closest(".session")?.dataset.id;
  put(list, groups.flatMap(({ name, items }) => group(name, items)));
  if (focused && !list.contains(document.activeElement)) rowsMade.get(focused)?.item.firstChild.focus(); // its row was made anew
  settleKeys();
}

function group(name, items) {
  if (!groupsMade.has(name)) groupsMade.set(name, { heading: el("h3", {}, name), rows: el("ul.session-list") });
  const { heading, rows } = groupsMade.get(name);
  put(rows, items.map(row));
  return [heading, rows];
}

function groupName(iso) {
  const name = dayName(iso);
  if (isRecent(iso)) return name;
  const days = (Date.now() - new Date(iso)) / 86_400_000;
  if (days < 31) return text(days < 7 ? "chat.sessions.this_week" : "chat.sessions.this_month");
  return new Intl.DateTimeFormat(LOCALE, { month: "long", year: "numeric" }).format(new Date(iso));
}

const isRecent = (iso) => [text("page.today"), text("page.yesterday")].includes(dayName(iso));

/** The time of day for chats under "Today" and "Yesterday", else the day. */
const said = (iso) => (isRecent(iso) ? clock(iso) : when(iso));

const named = (session) => session.title || text("page.untitled_chat");

/** The row of a session.  It is reused while its content is the same, so that it keeps focus and clicks. */
function row(session) {
  const says = [session.title, said(session.updated_at), session.busy, session.message_count, session.pinned].join("\n");
  if (rowsMade.get(session.id)?.says !== says) rowsMade.set(session.id, { says, item: newRow(session) });
  const { item } = rowsMade.get(session.id);
  const current = session.id === shown.sessionId;
  item.classList.toggle("current", current);
  item.querySelector("input").checked = selected.has(session.id);
  if (current) item.firstChild.setAttribute("aria-current", "true");
  else item.firstChild.removeAttribute("aria-current");
  return item;
}

function newRow(session) {
  const title = named(session);
  const label = (action) => ({ title: action, "aria-label": text("chat.sessions.of_chat", { action, title }) });
  const box = el("input", { type: "checkbox", ...label(text("chat.sessions.select")) });
  box.addEventListener("change", () => {
    if (box.checked) selected.add(session.id);
    else selected.delete(session.id);
    tally();
  });
  const pin = text(session.pinned ? "chat.sessions.unpin" : "chat.sessions.pin");
  return el("li.session", { dataset: { id: session.id } },
    el("button.session-open", { type: "button", title, onclick: () => openSession(session.id) },
      el("span", {}, title), el("span.when", {}, session.busy ? text("chat.sessions.replying", { time: said(session.updated_at) }) : said(session.updated_at))),
    el("span.session-tools", {},
      button(icon("edit"), () => rename(session), { kind: "icon", ...label(text("chat.sessions.rename")) }),
      button(icon("pin"), () => change([session.id], (path) => api.patch(path, { pinned: !session.pinned })), { kind: "icon", ...label(pin) }),
      button(icon("forget"), () => erase([session]), { kind: "icon", ...label(text("page.delete")) })),
    el("label.check", {}, box),
  );
}

function rename(session) {
  renaming = session.id;
  const { item } = rowsMade.get(session.id);
  rowsMade.delete(session.id); // the row is created again after renaming
  const box = el("input", { type: "text", value: session.title, maxLength: 200, "aria-label": text("chat.sessions.name") });
  const leave = () => {
    renaming = null;
    draw();
    rowsMade.get(session.id)?.item.firstChild.focus();
  };
  let done = false;
  const save = async () => {
    if (done) return;
    done = true;
    const title = box.value.trim();
    if (title && title !== session.title) {
      try {
        const changed = await api.patch(api.sessionPath(session.id), { title });
        Object.assign(sessions.find((one) => one.id === session.id) ?? session, changed); // the list may have been reloaded
        emit("sessions", { sessionId: session.id });
      } catch (error) {
        done = false;
        item.append(el("p.list-note", { role: "alert" }, error.message));
        return;
      }
    }
    leave();
  };
  box.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (isEnter(event)) save();
    if (event.key === "Escape") {
      done = true;
      leave();
    }
  });
  box.addEventListener("blur", save);
  item.replaceChildren(box);
  box.select();
}

function tally() {
  bar.hidden = !selected.size;
  count.textContent = text("chat.sessions.selected", { count: selected.size });
  list.classList.toggle("selecting", selected.size > 0);
}

/** Call `deed(path)` for each of these sessions.  One that is gone meanwhile is left out. */
async function change(ids, deed) {
  try {
    for (const id of ids) {
      await deed(api.sessionPath(id)).catch((error) => {
        if (error.status !== 404) throw error;
      });
      selected.delete(id);
    }
    announce(text("chat.sessions.done"));
  } catch (error) {
    return trouble(error, read);
  }
  emit("sessions");
}

async function erase(chats) {
  const title = text("chat.sessions.delete_title", { count: chats.length });
  const what = chats.length === 1
    ? text("chat.sessions.delete_one", { title: named(chats[0]), count: chats[0].message_count })
    : text("chat.sessions.delete_many");
  if (!(await confirmed(title, what, text("page.delete")))) return;
  const ids = chats.map(({ id }) => id);
  await change(ids, api.del);
  if (ids.includes(shown.sessionId)) newChat();
}

async function find() {
  const mine = ++asked;
  const q = search.value.trim();
  try {
    const [titles, messages] = await Promise.all([
      api.get("/api/sessions", { q, limit: 5 }),
      api.get("/api/search", { q, limit: 20, timezone: timezone() }),
    ]);
    if (mine === asked) found(titles.items, messages.results);
  } catch (error) {
    if (mine === asked) trouble(error, find);
  }
}

function found(titles, hits) {
  if (!titles.length && !hits.length) {
    list.replaceChildren(el("p.list-note", { role: "status" }, text("chat.sessions.not_found")));
    return;
  }
  list.replaceChildren(
    ...(titles.length ? [el("h3", {}, text("chat.sessions.chats")), el("ul.session-list", {}, titles.map(row))] : []),
    ...(hits.length ? [el("h3", {}, text("chat.sessions.messages")), el("ul.session-list", {}, hits.map((hit) => el("li", {}, hitButton(hit))))] : []),
  );
  settleKeys();
}

function hitButton(hit) {
  return el("button.hit", { type: "button", onclick: () => jumpTo(hit.session_id, hit.message_id) },
    el("span.hit-title", {}, named(hit)),
    el("span.when", {}, text("chat.message.label", { speaker: speaker(hit), time: when(hit.created_at) })), el("span.hit-text", {}, marked(hit)));
}

/** The text from a little before the first word that was found, with these words marked. */
function marked({ content, highlights }) {
  if (!highlights.length) return content;
  const words = highlights.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).sort((a, b) => b.length - a.length);
  const parts = content.split(new RegExp(`(?<!${LETTER})(${words.join("|")})(?!${LETTER})`, "u"));
  const begins = parts[0].length > HIT_BEFORE ? `…${parts[0].slice(-HIT_BEFORE)}` : parts[0];
  return [begins, ...parts.slice(1).map((part, at) => (at % 2 ? part : el("mark", {}, part)))];
}

function trouble(error, retry) {
  list.replaceChildren(el("p.list-note", { role: "alert" }, error.message, " ", button(text("chat.message.retry"), retry, { kind: "link" })));
}
