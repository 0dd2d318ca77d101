// The left panel: all chats, newest first, and a search through their messages.

import * as api from "../page/api.js";
import { jumpTo, newChat, openSession } from "./conversation.js";
import { confirmed } from "../page/dialog.js";
import { arrowKeys, button, byId, el, isEnter, put } from "../page/dom.js";
import { icon } from "../page/icons.js";
import { emit, on, shown, timezone } from "../page/state.js";
import { clock, dayName, when } from "../page/words.js";

const PAGE = 30;
const LETTER = "[\\p{sc=Latn}\\p{sc=Cyrl}\\p{sc=Grek}\\p{N}]"; // of scripts that part words by spaces
const HIT_BEFORE = 40; // characters shown before the first word that was found
const SEARCH_DELAY = 180; // milliseconds after the last key before a search starts

const list = byId("session-list");
const search = byId("search");
let sessions = [];
let more = null; // cursor to older chats
let renaming = null;
let asked = 0; // counts requests, to ignore responses to earlier ones
let settleKeys = () => {};
const rowsMade = new Map(); // by session: {says, item}
const groupsMade = new Map(); // by name: {heading, rows}

export function startSessions() {
  byId("new-chat").addEventListener("click", () => newChat());
  byId("temporary-chat").addEventListener("click", () => newChat({ temporary: true }));
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
  for (const event of ["begun", "turn", "sessions", "person"]) on(event, () => search.value.trim() || read());
  on("session", () => search.value.trim() || draw());
  read();
}

const stops = () => [...list.querySelectorAll(".session-open, .hit")];

async function read() {
  const mine = ++asked;
  try {
    const page = await api.get("/api/sessions", { limit: Math.max(PAGE, Math.min(100, sessions.length)) });
    if (mine !== asked) return;
    sessions = page.items;
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
    const page = await api.get("/api/sessions", { limit: PAGE, cursor });
    if (mine !== asked) return;
    sessions.push(...page.items);
    more = page.next_cursor;
    draw();
  } catch {
    more = cursor; // scrolling further tries again
  }
}

function draw() {
  if (renaming && list.querySelector(".session input")) return; // keep the form that is being edited
  if (!sessions.length) {
    list.replaceChildren(el("p.list-note", {}, "No chats yet. The first one begins with your first message."));
    return;
  }
  const groups = [];
  for (const session of sessions) {
    const name = groupName(session.updated_at);
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
  if (name === "Today" || name === "Yesterday") return name;
  const days = (Date.now() - new Date(iso)) / 86_400_000;
  return days < 7 ? "This week" : days < 31 ? "This month" : new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" }).format(new Date(iso));
}

/** The time of day for chats under "Today" and "Yesterday", else the day. */
function said(iso) {
  return ["Today", "Yesterday"].includes(dayName(iso)) ? clock(iso) : when(iso);
}

/** The row of a session.  It is reused while its content is the same, so that it keeps focus and clicks. */
function row(session) {
  const says = [session.title, said(session.updated_at), session.busy, session.message_count].join("\n");
  if (rowsMade.get(session.id)?.says !== says) rowsMade.set(session.id, { says, item: newRow(session) });
  const { item } = rowsMade.get(session.id);
  const current = session.id === shown.sessionId;
  item.classList.toggle("current", current);
  if (current) item.firstChild.setAttribute("aria-current", "true");
  else item.firstChild.removeAttribute("aria-current");
  return item;
}

function newRow(session) {
  const title = session.title || "Untitled chat";
  return el("li.session", { dataset: { id: session.id } },
    el("button.session-open", { type: "button", title, onclick: () => openSession(session.id) },
      el("span", {}, title), el("span.when", {}, `${said(session.updated_at)}${session.busy ? " · replying" : ""}`)),
    el("span.session-tools", {},
      button(icon("edit"), () => rename(session), { kind: "icon", "aria-label": `Rename ${title}`, title: "Rename" }),
      button(icon("forget"), () => erase(session), { kind: "icon", "aria-label": `Delete ${title}`, title: "Delete" })),
  );
}

function rename(session) {
  renaming = session.id;
  const { item } = rowsMade.get(session.id);
  rowsMade.delete(session.id); // the row is created again after renaming
  const box = el("input", { type: "text", value: session.title, maxLength: 200, "aria-label": "Name of this chat" });
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

async function erase(session) {
  const text = `“${session.title || "Untitled chat"}” is erased with its ${session.message_count} messages, its summary and the facts taken from it. This can't be undone.`;
  if (!(await confirmed("Delete this chat?", text, "Delete"))) return;
  try {
    await api.del(api.sessionPath(session.id));
  } catch (error) {
    if (error.status !== 404) return trouble(error, read);
  }
  sessions = sessions.filter((one) => one.id !== session.id);
  if (session.id === shown.sessionId) newChat();
  read();
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
    list.replaceChildren(el("p.list-note", { role: "status" }, "No chat mentions that. Try other words."));
    return;
  }
  list.replaceChildren(
    ...(titles.length ? [el("h3", {}, "Chats"), el("ul.session-list", {}, titles.map(row))] : []),
    ...(hits.length ? [el("h3", {}, "Messages"), el("ul.session-list", {}, hits.map((hit) => el("li", {}, hitButton(hit))))] : []),
  );
  settleKeys();
}

function hitButton(hit) {
  const who = hit.name || (hit.role === "user" ? "You" : "Recap");
  return el("button.hit", { type: "button", onclick: () => jumpTo(hit.session_id, hit.message_id) },
    el("span.hit-title", {}, hit.title || "Untitled chat"),
    el("span.when", {}, `${who}, ${when(hit.created_at)}`), el("span.hit-text", {}, marked(hit)));
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
  list.replaceChildren(el("p.list-note", { role: "alert" }, error.message, " ", button("Try again", retry, { kind: "link" })));
}
