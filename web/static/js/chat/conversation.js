// The middle panel: which chat is on display, and the turns that are taken in it.
import * as api from "../page/api.js";
import { askToErase } from "../memory/forget.js";
import { announce, byId } from "../page/dom.js";
import { html, render } from "../page/html.js";
import { spoken } from "../page/markdown.js";
import { closePanel } from "../page/panels.js";
import { Icon } from "../page/rows.js";
import { emit, forgetChat, on, shown } from "../page/state.js";
import { randomId, shortened, text } from "../page/words.js";
import { filesOf, keepSent, wordsOf } from "./attachments.js";
import { Strip } from "./chart.js";
import { Composer, composer, draftOf, stored } from "./composer.js";
import { Messages } from "./messages.js";
import { Related } from "./related.js";
import { Scroll, bringIntoView, follow } from "./scrolling.js";
import { Thread, saveChat } from "./thread.js";
import { followTurn, forgetPart, heardOf, liveTurn, takeTurn } from "./turns.js";

const AWAY = 10_000; // milliseconds after which what is shown may be old
let thread = null; // null: not loaded yet; a new or temporary chat has a thread without a session
let failure = null; // {message, told, again?}: of the last turn, or of loading the chat
let editing = null; // the id of the message being edited
let facts = new Map(); // that apply to the chat, by the message that they were taken from
let pressed = null; // a text submitted before the page or the thread was loaded; it is sent afterwards
let behind = false; // whether what another tab said is not shown yet
let left = 0; // when the page was last hidden
let opening = 0; // counts opened sessions, to ignore responses for earlier ones

/** What the person can do with messages. */
const acts = {
  jump: jumpTo,
  write: (words) => composer.write(words),
  progress,
  edit,
  leave: () => {
    draw({ edit: null });
    refresh({ sessionId: thread.sessionId }); // which waited
  },
  replace: (message, words) => submit(words, { replaces: message.id, files: filesOf(message) ?? [] }),
  retry: (message) => again(message, { replaces: message.id }),
  resume: (message) => again(message, { resumes: message.id }),
  erase: (message) => askToErase(message).catch(complain),
  hide: (message, hidden) => hide(message, hidden).catch(complain),
  toNewest: () => openSession(thread.sessionId),
  loadOlder: () => loadMore((from) => from.loadOlder()),
  loadNewer: () => loadMore((from) => from.loadNewer()),
  showVersion: (id) => showVersion(id).catch(complain),
};

export function startConversation() {
  on("turn", turnEnded);
  on("begun", refresh);
  on("sessions", (detail) => detail && (detail.gone ? leave(detail.gone) : detail.erased ? leaveOut(detail) : refresh(detail)));
  on("summarised", renamed);
  on("facts", (found) => {
    facts = Map.groupBy(found, (fact) => fact.source_message_id);
    redraw();
  });
  on("person", () => newChat());
  window.addEventListener("hashchange", followAddress);
  document.addEventListener("visibilitychange", comeBack);
  window.addEventListener("online", () => {
    composer.edited(); // its complaint was that the server can't be reached
    left = 0;
    comeBack();
  });
  followAddress();
}

// -- which chat

/** Show a session's newest messages. */
export const openSession = (sessionId) => load(sessionId, () => Thread.latest(sessionId));

/** Show one message of a session, with the messages around it; without a message, the newest ones. */
export async function jumpTo(sessionId, messageId) {
  closePanel();
  if (!messageId) {
    openSession(sessionId);
    return;
  }
  if (thread?.sessionId !== sessionId || !thread.holds(messageId)) {
    await load(sessionId, () => Thread.around(sessionId, messageId), { end: false });
  }
  const item = byId("messages").querySelector(`[data-id="${messageId}"]`);
  if (!item) return;
  bringIntoView(item, "center");
  item.classList.remove("found");
  requestAnimationFrame(() => item.classList.add("found"));
  item.tabIndex = -1;
  item.focus({ preventScroll: true });
}

export function newChat({ temporary = false } = {}) {
  setAddress(null);
  startFresh(null, temporary);
  composer.focus();
}

function followAddress() {
  const match = /^#\/([^/]+)(?:\/(\d+))?$/.exec(location.hash); // a chat, and one of its messages
  const wanted = match ? decoded(match[1]) : null;
  if (match?.[2]) {
    jumpTo(wanted, Number(match[2]));
    return;
  }
  if (wanted === shown.sessionId && thread) return;
  if (wanted) openSession(wanted);
  else startFresh(null);
}

/** A part of an address, which anybody may have written. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function setAddress(sessionId) {
  const hash = sessionId ? `#/${encodeURIComponent(sessionId)}` : "#/";
  if (location.hash !== hash) history.pushState(null, "", hash);
}

async function load(sessionId, read, { end = true } = {}) {
  const mine = begin(sessionId);
  setAddress(sessionId);
  try {
    const loaded = await read();
    if (mine === opening) accept(loaded, end);
  } catch (error) {
    if (mine !== opening) return;
    if (error.code === "message_not_found") return openSession(sessionId).then(() => complain(error)); // the chat is there
    if (error.status === 404) return draftOf(sessionId) ? startFresh(sessionId) : lose(sessionId); // the first message was never stored
    failure = { message: error.message, told: error.told, again: () => openSession(sessionId) };
    accept(new Thread(sessionId));
  }
}

function startFresh(sessionId, temporary = false) {
  begin(sessionId, temporary);
  accept(new Thread(sessionId));
}

function begin(sessionId, temporary = false) {
  opening += 1;
  if (shown.sessionId !== sessionId || !sessionId) Object.assign(shown, { systemPrompt: "", remember: true });
  shown.sessionId = sessionId;
  shown.temporary = temporary && randomId();
  thread = failure = editing = null;
  composer.openDraft(draftName());
  return opening;
}

function accept(loaded, end = true) {
  const waiting = loaded.unanswered;
  if (waiting && draftOf(draftName()) === waiting.content) {
    stored(draftName(), waiting.content); // the message was stored, although sending it seemed to fail
    composer.openDraft(draftName());
  }
  follow(end);
  show(loaded);
  emit("session", shown.sessionId);
  if (pressed !== null && composer.holds(pressed)) submit(pressed);
  pressed = null;
}

const draftName = () => (shown.temporary ? "temporary" : (shown.sessionId ?? "new"));

/** Show a thread, and the reply that is being written in it, here or for another page. */
function show(loaded) {
  thread = loaded;
  behind = false;
  shown.remember = thread.session?.remember ?? shown.remember;
  const waiting = thread.unanswered;
  if (thread.session?.busy && !liveTurn(shown.sessionId)) followTurn(thread.sessionId, waiting, partOf(waiting));
  draw();
}

/** What is known of the reply to a message that has none. */
const partOf = (message) => heardOf(thread.sessionId, message?.id, thread.turns.get(message?.id)?.so_far);

// -- what changes in it

/** Show the title that the chat on display has now. */
async function renamed({ sessionId }) {
  const mine = thread;
  if (mine?.sessionId !== sessionId) return;
  await mine.readSession().catch(() => null);
  if (mine === thread) draw();
}

/** Forget chats that were deleted, and leave one that is on display.  What was typed for it stays in the box. */
function leave(gone) {
  const words = draftOf(shown.sessionId);
  gone.forEach(forgetChat);
  if (!gone.includes(shown.sessionId)) return;
  newChat();
  if (words) composer.write([draftOf("new"), words].filter(Boolean).join("\n"));
}

/** Leave the chat on display, which was deleted elsewhere, and say so. */
function lose(sessionId) {
  history.replaceState(null, "", "#/"); // so that Back does not lead to it
  leave([sessionId]);
  complain({ message: text("chat.thread.gone") });
}

/** Show what has changed while nobody looked: on another device, or before this one woke up. */
function comeBack() {
  if (document.hidden) left = Date.now();
  else if (Date.now() - left > AWAY) {
    emit("turn", { sessionId: shown.sessionId });
    emit("memory");
  }
}

/** Show what has changed in the chat on display without this tab. */
async function refresh({ sessionId }) {
  const shows = () => sessionId && sessionId === thread?.sessionId && !thread.newer;
  const waits = () => !shows() || liveTurn(sessionId) || editing;
  if (waits()) return;
  const loaded = await Thread.latest(sessionId).catch((error) => ({ gone: error.status === 404 }));
  if (waits()) return;
  if (loaded instanceof Thread) show(loaded.after(thread));
  else if (loaded.gone && thread.session) lose(sessionId);
}

function edit(id) {
  follow(false); // the form is shown, not the end
  draw({ edit: id });
}

async function loadMore(read) {
  const from = thread;
  await read(from);
  if (from === thread) draw();
}

/** Have the chat go on from another version of one of its messages. */
async function showVersion(id) {
  const { sessionId } = thread;
  await api.post(`${thread.path}/messages/${id}/restore`);
  thread = null; // its messages are others now
  emit("sessions", { sessionId });
  await jumpTo(sessionId, id);
}

/** Turn the memory of the chat on display on or off. */
async function turnMemory() {
  const remember = !shown.remember;
  const mine = thread;
  if (mine?.session) Object.assign(mine.session, await api.patch(mine.path, { remember }));
  if (mine?.sessionId !== shown.sessionId) return; // another chat is on display by now
  shown.remember = remember;
  redraw();
}

/** Have prompts of the chat leave out a message, or show it again. */
async function hide({ id }, hidden) {
  await api.post(`${thread.path}/messages/${hidden ? "hide" : "show"}`, { ids: [id] });
  thread?.mark(id, { hidden_at: hidden ? new Date().toISOString() : null });
  redraw();
}

/** Remove an erased message.  The others may have shown text of it. */
async function leaveOut({ sessionId, erased }) {
  if (thread?.sessionId !== sessionId) return;
  await thread.leaveOut(erased).catch(complain);
  draw();
}

const complain = (error) => composer.complain(error.message);

// -- turns

/** Have a message answered once more, with all that came with it. */
function again(message, how) {
  const files = filesOf(message);
  if (files) submit(wordsOf(message), { ...how, files });
  else composer.complain(text("chat.attach.gone"));
}

function submit(words, { replaces = null, resumes = null, files = composer.files } = {}) {
  if (!thread) pressed = words;
  if (!thread || liveTurn(shown.sessionId)) return; // loading or replying: the text stays in the box
  if (!shown.sessionId && !shown.temporary) {
    shown.sessionId = thread.sessionId = randomId();
    setAddress(shown.sessionId);
  }
  composer.complain("");
  if (!replaces && !resumes) composer.sending(draftName(), words);
  failure = null;
  if (replaces) editing = null; // what follows may be edited
  const history = shown.temporary ? thread.items.map(({ role, content }) => ({ role, content })) : null;
  const sessionId = shown.temporary ? null : shown.sessionId;
  takeTurn({ sessionId, text: words, files, replaces, resumes, history, remember: shown.remember, fresh: !thread.session });
  follow(true);
  if (thread.newer) openSession(sessionId);
  else draw();
  announce(text("chat.thread.sent"));
}

function progress(turn) {
  const { user_message_id: id } = turn.told;
  if (id) keepSent(id, turn.files);
  if (id) stored(draftName(), turn.text);
  composer.setState({ stopping: turn.stopping });
}

async function turnEnded({ sessionId, turn }) {
  if (!turn) {
    behind ||= sessionId === thread?.sessionId;
    return refresh({ sessionId });
  }
  if (!turn.error) stored(sessionId ?? "temporary", turn.text);
  if (turn.place !== (shown.sessionId ?? shown.temporary) || !thread) return;
  const mine = opening;
  if (!turn.error) {
    const adds = turn.temporary || (turn.told.message_id && !turn.replaces);
    if (adds) thread.add(turn);
    if (!adds || behind) await refresh({ sessionId });
    const last = thread?.items.at(-1);
    if (mine === opening && last?.role === "assistant") announce(spoken(last.content));
  } else if (turn.temporary) giveBack(turn);
  else await afterFailure(turn, mine);
  if (mine === opening) draw();
  if (mine === opening && !turn.error) await noticeNewBeginning(thread);
}

/** Show only what is stored, and say so, when the chat was deleted elsewhere and has begun anew with this turn. */
async function noticeNewBeginning(mine) {
  const { sessionId, session: before } = mine;
  await (sessionId && mine.readSession().catch(() => null));
  if (mine !== thread || !before || before.created_at === mine.session.created_at) return;
  await openSession(sessionId);
  complain({ message: text("chat.thread.began_anew") });
}

/** Check whether the server stored the message.  If it did not, put the text back into the box. */
async function afterFailure(turn, mine) {
  const loaded = await Thread.latest(turn.sessionId).catch(() => null);
  if (mine !== opening) return;
  if (loaded?.holds(turn.told.user_message_id) || loaded?.unanswered?.content === turn.text) {
    stored(draftName(), turn.text);
    if (loaded.unanswered?.refused) announce(text("chat.message.refused"));
    else failure = turn.error;
    show(loaded);
  } else giveBack(turn);
}

function giveBack(turn) {
  composer.giveBack(draftName(), turn.text, turn.files);
  complain(turn.error);
}

// -- what is shown

const redraw = () => thread && draw();

/** Draw the panel; before the page has opened a chat, only its frame, so that one can type. */
function draw({ edit = editing } = {}) {
  editing = edit;
  const turn = liveTurn(shown.sessionId);
  const waiting = thread?.unanswered;
  if (thread && !turn && !waiting) forgetPart(thread.sessionId);
  const first = thread?.items.find((message) => message.role === "user");
  const named = thread?.session?.title || (first && shortened(first.content));
  const title = shown.temporary ? text("page.temporary_chat") : named;
  document.title = title ? `${title} · Recap` : "Recap";
  const { temporary } = shown;
  const about = { thread, turn, part: waiting && partOf(waiting), failure, editing, facts, temporary, acts };
  const opens = (panel) => ({ type: "button", "data-open-panel": panel, "aria-expanded": "false", "aria-controls": panel });
  const log = { id: "messages", tabindex: 0, role: "log", "aria-label": text("page.messages"), "aria-live": "off", "aria-busy": thread ? null : "true" };
  const panel = html`<header class="panel-head">
      <button class="icon only-narrow" aria-label=${text("page.open_chats")} ...${opens("sessions")}>☰</button>
      <h1 class="grow cut">${title || text("page.new_chat")}</h1>
      ${thread?.session && html`<button type="button" class="icon" aria-label=${text("page.save_chat")} title=${text("page.save_chat")}
          onClick=${() => saveChat(shown.sessionId).catch(complain)}><${Icon} name="save" /></button>`}
      <button class="only-medium" ...${opens("memory")}>${text("page.memory")}</button>
    </header>
    <${Related} open=${openSession} />
    <${Strip} />
    <${Scroll} class="messages ${turn ? "replying" : ""}" ...${log}>${thread && html`<${Messages} ...${about} />`}<//>
    <${Composer} ready=${Boolean(thread)} send=${submit} turnMemory=${() => turnMemory().catch(complain)} />`;
  render(panel, byId("conversation"));
}

draw();
