// The middle panel: the messages of the session on display, and its turn in progress.
//
// `draw` renders three things: the loaded `thread`, the turn in progress, and the last failure.  The element of a
// message is created once and reused.

import { announce, button, byId, el, put } from "../page/dom.js";
import * as composer from "./composer.js";
import { editor } from "./editor.js";
import { emptyState } from "./empty.js";
import { eraseButton } from "./erase.js";
import { body, messageItem, replyInProgress } from "./message.js";
import { icon } from "../page/icons.js";
import { saveChat } from "./markdown_file.js";
import { emit, on, settings, shown } from "../page/state.js";
import { bringIntoView, follow, keepEnd, startScrolling } from "./scrolling.js";
import { Thread } from "./thread.js";
import { text } from "../page/texts.js";
import { followTurn, forgetPart, heardOf, liveTurn, takeTurn } from "./turns.js";
import { dayKey, dayName, randomId, shortened } from "../page/words.js";
import { versionSteps } from "./versions.js";
import { onShow } from "./why.js";

const list = byId("messages");
let thread = null; // null: not loaded yet; a new or temporary chat has a thread without a session
let failure = null; // {message}: of the last turn, shown under the thread
let editing = null; // {id, form}: the message being edited
let elements = new Map(); // by message id
let facts = new Map(); // that apply to the chat, by the message that they were taken from
let pressed = null; // a text submitted before the page or the thread was loaded; it is sent afterwards
let writing = null; // {of, reply}: the turn in progress, and the element of its reply
let opening = 0; // counts opened sessions, to ignore responses for earlier ones

export function startConversation() {
  onShow({ jumpTo, bringIntoView });
  const watch = new IntersectionObserver((seen) => {
    for (const entry of seen) if (entry.isIntersecting) loadMore(entry.target.dataset.edge);
  }, { root: list, rootMargin: "400px 0px" });
  const edges = () => list.querySelectorAll("[data-edge]");
  new MutationObserver(() => {
    watch.disconnect();
    for (const edge of edges()) watch.observe(edge);
  }).observe(list, { childList: true });
  startScrolling();
  on("turn", turnEnded);
  on("begun", refresh);
  on("sessions", (detail) => detail && !detail.by && (detail.erased ? leaveOut(detail) : refresh(detail)));
  on("summarised", renamed);
  on("facts", (found) => {
    facts = Map.groupBy(found, (fact) => fact.source_message_id);
    if (thread) draw();
  });
  on("person", () => newChat());
  byId("save-chat").append(icon("save"));
  byId("save-chat").addEventListener("click", () => saveChat(shown.sessionId).catch(complain));
  window.addEventListener("hashchange", followAddress);
  followAddress();
}

composer.startComposer(submit, () => liveTurn(shown.sessionId)?.stop());

/** Show a session's newest messages. */
export async function openSession(sessionId) {
  const mine = begin(sessionId);
  setAddress(sessionId);
  try {
    const loaded = await Thread.latest(sessionId);
    if (mine === opening) accept(loaded);
  } catch (error) {
    if (mine !== opening) return;
    if (error.status === 404) startFresh(sessionId); // the first message was never stored; its draft may exist
    else showTrouble(error, () => openSession(sessionId));
  }
}

/** Show one message of a session, with the messages around it. */
export async function jumpTo(sessionId, messageId) {
  document.dispatchEvent(new CustomEvent("show-conversation"));
  if (thread?.sessionId !== sessionId || !thread.holds(messageId)) {
    const mine = begin(sessionId);
    setAddress(sessionId);
    try {
      const loaded = await Thread.around(sessionId, messageId);
      if (mine !== opening) return;
      accept(loaded, { end: false });
    } catch (error) {
      if (mine === opening) showTrouble(error, () => openSession(sessionId));
      return;
    }
  }
  const item = elements.get(messageId);
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
  composer.focusComposer();
}

// -- which session

function followAddress() {
  const match = /^#\/(.+)$/.exec(location.hash);
  const wanted = match ? decodeURIComponent(match[1]) : null;
  if (wanted === shown.sessionId && thread) return;
  if (wanted) openSession(wanted);
  else startFresh(null);
}

function setAddress(sessionId) {
  const hash = sessionId ? `#/${encodeURIComponent(sessionId)}` : "#/";
  if (location.hash !== hash) history.pushState(null, "", hash);
}

function begin(sessionId, temporary = false) {
  opening += 1;
  if (shown.sessionId !== sessionId) shown.systemPrompt = "";
  shown.sessionId = sessionId;
  shown.temporary = temporary;
  thread = failure = editing = null;
  composer.openDraft(draftName());
  return opening;
}

function startFresh(sessionId, temporary = false) {
  begin(sessionId, temporary);
  accept(new Thread(sessionId));
}

function accept(loaded, { end = true } = {}) {
  const waiting = loaded.unanswered;
  if (waiting && draftMatches(waiting.content)) {
    composer.stored(draftName(), waiting.content); // the message was stored, although sending it seemed to fail
    composer.openDraft(draftName());
  }
  follow(end);
  show(loaded);
  emit("session", shown.sessionId);
  if (pressed !== null && composer.holds(pressed)) submit(pressed);
  pressed = null;
}

const draftName = () => (shown.temporary ? "temporary" : (shown.sessionId ?? "new"));
const draftMatches = (text) => sessionStorage.getItem(`recap.draft.${draftName()}`) === text;

/** Show a thread, and the reply that is being written in it, here or for another page. */
function show(loaded) {
  thread = loaded;
  elements = new Map();
  writing = null;
  const busy = thread.session?.busy;
  const waiting = thread.unanswered;
  const turn = liveTurn(shown.sessionId) ?? (busy ? followTurn(thread.sessionId, waiting, partOf(waiting)) : null);
  if (turn) turn.changed = progress;
  draw();
}

/** What is known of the reply to a message that has none. */
const partOf = (message) => heardOf(thread.sessionId, message?.id, thread.turns.get(message?.id)?.so_far);

/** Show the title that the chat on display has now. */
async function renamed({ sessionId }) {
  const mine = thread;
  if (mine?.sessionId !== sessionId) return;
  await mine.readSession().catch(() => null);
  if (mine === thread) head();
}

/** Show what has changed in the chat on display without this tab. */
async function refresh({ sessionId }) {
  const waits = () => !thread?.sessionId || sessionId !== thread.sessionId || liveTurn(sessionId) || editing || thread.newer;
  if (waits()) return;
  const loaded = await Thread.latest(sessionId).catch(() => null);
  if (loaded && !waits()) show(loaded.after(thread));
}

async function loadMore(edge) {
  if (!thread?.[edge] || thread.loading) return;
  const from = thread;
  from.loading = true;
  try {
    await (edge === "older" ? from.loadOlder() : from.loadNewer());
    if (from === thread) draw();
  } catch (error) {
    complain(error);
  } finally {
    from.loading = false;
  }
}

// -- turns

function submit(words, { replaces = null, resumes = null } = {}) {
  if (!thread) pressed = words;
  if (!thread || liveTurn(shown.sessionId)) return; // loading or replying: the text stays in the box
  if (!shown.sessionId && !shown.temporary) {
    shown.sessionId = thread.sessionId = randomId();
    setAddress(shown.sessionId);
  }
  composer.complain("");
  if (!replaces && !resumes) composer.sending(draftName(), words);
  failure = editing = null;
  const history = shown.temporary ? thread.items.map(({ role, content }) => ({ role, content })) : null;
  const sessionId = shown.temporary ? null : shown.sessionId;
  const turn = takeTurn({ sessionId, text: words, replaces, resumes, history, remember: composer.remembers() });
  turn.changed = progress;
  follow(true);
  if (thread.newer) openSession(sessionId);
  else draw();
  announce(text("chat.thread.sent"));
}

function progress() {
  const turn = liveTurn(shown.sessionId);
  if (!turn) return;
  if (turn.userMessageId) composer.stored(draftName(), turn.text);
  composer.replying(turn);
  writing?.reply.show(turn);
  requestAnimationFrame(keepEnd); // after the reply is drawn
}

async function turnEnded({ sessionId, turn }) {
  if (!turn) return refresh({ sessionId });
  if (sessionId !== shown.sessionId || turn.temporary !== shown.temporary || !thread) return;
  const mine = opening;
  if (!turn.error) {
    composer.stored(draftName(), turn.text);
    if (turn.temporary || (turn.messageId && !turn.replaces)) thread.add(turn);
    else await refresh({ sessionId });
    const last = thread.items.at(-1);
    if (mine === opening && last?.role === "assistant") announce(body(last.role, last.content).textContent);
  } else if (turn.temporary) {
    composer.giveBack(draftName(), turn.text);
    composer.complain(turn.error.message);
  } else {
    await afterFailure(turn, mine);
  }
  if (mine === opening) draw();
}

/** Check whether the server stored the message.  If it did not, put the text back into the box. */
async function afterFailure(turn, mine) {
  const loaded = await Thread.latest(turn.sessionId).catch(() => null);
  if (mine !== opening) return;
  if (loaded?.holds(turn.userMessageId) || loaded?.unanswered?.content === turn.text) {
    composer.stored(draftName(), turn.text);
    failure = turn.error;
    show(loaded);
  } else {
    composer.giveBack(draftName(), turn.text);
    composer.complain(turn.error.message);
    composer.focusComposer();
  }
}

// -- what is shown

function draw() {
  const turn = liveTurn(shown.sessionId);
  const height = list.scrollHeight;
  const top = list.scrollTop;
  const firstBefore = list.querySelector("article")?.dataset.id;
  const cut = turn?.replaces && !thread.holds(turn.userMessageId); // what is replaced and follows is no longer shown
  const items = cut ? thread.items.slice(0, Math.max(0, thread.items.findIndex(({ id }) => id === turn.replaces))) : thread.items;
  const nodes = [];
  if (thread.older) nodes.push(el("div.earlier", { dataset: { edge: "older" } }, text("chat.thread.earlier")));
  let day = null;
  for (const message of items) {
    if (dayKey(message.created_at) !== day) {
      day = dayKey(message.created_at);
      nodes.push(el("div.day", {}, dayName(message.created_at)));
    }
    nodes.push(element(message));
  }
  if (thread.newer) {
    nodes.push(el("div.earlier", { dataset: { edge: "newer" } }, text("chat.thread.later")));
    nodes.push(el("div.to-latest", {}, button(text("chat.thread.to_newest"), () => openSession(thread.sessionId), { kind: "primary" })));
  }
  nodes.push(...ending(turn));
  if (!nodes.length) nodes.push(emptyState({ temporary: shown.temporary, write: composer.write }));
  put(list, nodes);
  composer.replying(turn);
  list.classList.toggle("replying", Boolean(turn));
  head();
  if (!keepEnd() && firstBefore && list.querySelector("article")?.dataset.id !== firstBefore && list.querySelector(`article[data-id="${firstBefore}"]`)) {
    list.scrollTop = top + list.scrollHeight - height; // keep the visible messages in place
  }
}

/** The nodes below the stored messages: the turn in progress, or what there is of a reply that broke off. */
function ending(turn) {
  if (turn) {
    if (writing?.of !== turn) writing = { of: turn, reply: replyInProgress() };
    writing.reply.show(turn);
    const own = el("article.message.user", { "aria-label": text("chat.message.you") }, body("user", turn.text));
    return turn.resumes || thread.holds(turn.userMessageId) ? [writing.reply.item] : [own, writing.reply.item];
  }
  writing = null;
  const waiting = thread.unanswered;
  if (!waiting) {
    forgetPart(thread.sessionId);
    return [];
  }
  const part = partOf(waiting);
  const why = failure?.message ?? text(part ? "chat.thread.broke_off" : "chat.thread.unanswered");
  return [
    ...(part ? [el("article.message.assistant", { "aria-label": text("chat.message.broken_off") }, body("assistant", part))] : []),
    trouble(text("chat.thread.kept", { why }), () => submit(waiting.content, { resumes: waiting.id }), failure?.told),
  ];
}

/** An error within the thread.  `told` is what the server said of it, for whoever runs it. */
function trouble(words, retry, told = "") {
  return el("div.thread-error", { role: "alert" }, el("span", {}, words), button(text("chat.message.retry"), retry),
    told && el("details", {}, el("summary", {}, text("chat.thread.for_operators")), told));
}

/** The element of a message.  It is made once, and again when its actions change: drawing has to be fast in long chats. */
function element(message) {
  const stored = !shown.temporary;
  if (editing?.id === message.id) return editing.form;
  const last = thread.newer === null && message === thread.items.at(-1);
  const lastOwn = last && message.role === "assistant" && stored && thread.items.findLast((one) => one.role === "user");
  const turn = thread.turns.get(message.id);
  const brought = (turn?.message_id === message.id && facts.get(turn.user_message_id)) || [];
  const versions = thread.versions.get(message.id) ?? [];
  const wanted = [lastOwn && "retry", ...brought.map((fact) => `${fact.id} ${fact.text}`), ...versions].join();
  const key = message.id ?? message;
  const kept = elements.get(key);
  if (kept?.dataset.wanted === wanted) return kept;
  const free = { kind: "quiet when-free" };
  const actions = [
    versions.length && versionSteps(thread.sessionId, message, versions, { show: (id) => jumpTo(shown.sessionId, id), failed: complain }),
    message.role === "user" && stored && button(text("chat.message.edit"), () => edit(message), free),
    lastOwn && button(text("chat.message.retry"), () => replaceWith(lastOwn)(lastOwn.content), { ...free, title: text("chat.message.retry_means") }),
    stored && eraseButton(thread.sessionId, message, complain),
  ];
  const made = messageItem(message, { turn, facts: brought, actions: actions.filter(Boolean) });
  made.dataset.wanted = wanted;
  elements.set(key, made);
  return made;
}

const replaceWith = (message) => (words) => submit(words, { replaces: message.id });

const complain = (error) => composer.complain(error.message);

/** Remove an erased message, and redraw the others, which may have shown text of it. */
async function leaveOut({ sessionId, erased }) {
  if (thread?.sessionId !== sessionId) return;
  await thread.leaveOut(erased).catch(complain);
  elements = new Map();
  draw();
}

function edit(message) {
  const form = editor(message, { send: replaceWith(message), complain: composer.complain, leave });
  editing = { id: message.id, form };
  draw();
  form.querySelector("textarea").focus();
}

function leave() {
  editing = null;
  draw();
}

function showTrouble(error, retry) {
  thread = new Thread(shown.sessionId);
  emit("session", shown.sessionId);
  list.replaceChildren(trouble(error.message, retry, error.told));
}

function head() {
  const first = thread.items.find((message) => message.role === "user");
  const title = shown.temporary ? text("page.temporary_chat") : thread.session?.title || (first && shortened(first.content));
  byId("title").textContent = title || text("page.new_chat");
  byId("save-chat").hidden = !thread.session;
  document.title = title ? `${title} · Recap` : "Recap";
  byId("conversation").classList.toggle("temporary", shown.temporary);
  const person = settings.user === "me" ? "" : text("chat.composer.person", { person: settings.user });
  composer.say(shown.temporary ? text("chat.composer.temporary") : person);
}
