// The right panel: the summary of the chat on display and the person's facts, updated while the mini model works.
//
// Guarantee: old content stays until new content has arrived, so nothing flickers, jumps or loses focus.  The summary
// is polled only from the end of a turn until it is settled, and only while the page is visible.  Facts are reloaded
// when the version of the summary changes.

import * as api from "../page/api.js";
import { announce, button, byId, el } from "../page/dom.js";
import { html, render } from "../page/html.js";
import { FactForm } from "./fact_form.js";
import { FactList, ranked } from "./facts.js";
import { emit, on, shown } from "../page/state.js";
import { summaryView } from "./summary.js";
import { number } from "../page/words.js";

const WATCH_FIRST = 400; // milliseconds between polls of a summary that is being updated
const WATCH_MOST = 2000;
const WATCH_SLOWER = 1.4;
const FACTS_SHOWN = 40; // before the person asks for all

let sessionId = null; // whose memory is shown; shown.sessionId may already be another one
let temporary = false;
let summary = null; // from the API; null: there is none
let known = false; // whether the summary and the facts are loaded
let facts = []; // at first only FACTS_SHOWN of them are shown
let allShown = false;
let asked = 0; // counts requests, to ignore responses to earlier ones
let watching = null; // {pause, timer}, while the summary is expected to change

const body = byId("memory-body");
const trouble = el("div", { role: "alert" });
const summaryPart = summaryView({ changed: changedByHand, refresh });
const count = el("span.muted");
const note = el("p.memory-about");
const addButton = button("Add a fact", openAdd, { kind: "quiet" });
const addPlace = el("div");
const list = el("div");
const more = button("", showAll, { hidden: true });

export function startMemory() {
  body.append(
    trouble,
    summaryPart.element,
    el(
      "section.memory-part",
      { "aria-labelledby": "facts-heading" },
      el(
        "header.memory-head",
        {},
        el("h3", { id: "facts-heading" }, button(["Facts ", count], toFacts, { kind: "heading" })),
        el("div.memory-tools", {}, addButton),
      ),
      note,
      addPlace,
      list,
      more,
    ),
  );
  drawSummary();
  on("session", show);
  on("turn", turnEnded);
  on("memory", (detail) => detail?.by !== "panel" && read());
  on("person", forgetPerson);
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(watching?.timer) : lookSoon(0)));
}

// -- reading

function show() {
  stopWatching();
  if (shown.sessionId !== sessionId || shown.temporary !== temporary) body.setAttribute("aria-busy", "true");
  return read();
}

/** Load and show the memory of the chat on display. */
async function read() {
  const mine = ++asked;
  const [wanted, fleeting] = [shown.sessionId, shown.temporary];
  const [newSummary, newFacts] = await Promise.allSettled([readSummary(wanted), readFacts(wanted)]);
  if (mine !== asked) return;
  const failed = [newSummary, newFacts].find((result) => result.reason);
  const other = wanted !== sessionId || fleeting !== temporary;
  body.removeAttribute("aria-busy");
  if (failed && !other) return complain(failed.reason, read); // the content on display may be old, but belongs to this chat
  [sessionId, temporary] = [wanted, fleeting];
  known = !failed;
  summary = failed ? null : newSummary.value;
  if (other) {
    allShown = false;
    body.scrollTop = 0;
  }
  complain(failed?.reason, read);
  drawSummary();
  drawFacts(failed ? [] : newFacts.value);
  if (summary && !settled()) watch(WATCH_FIRST);
}

async function readSummary(id) {
  if (!id) return null;
  try {
    return await api.get(api.summaryPath(id));
  } catch (error) {
    if (error.status === 404) return null; // the first message is not stored yet
    throw error;
  }
}

/** The facts that apply to a chat; without a chat, those that apply to all chats. */
async function readFacts(id) {
  const found = await api.all("/api/facts", { session_id: id }).catch((error) => {
    if (id && error.status === 404) return api.all("/api/facts");
    throw error;
  });
  return found.filter((fact) => fact.scope === "user" || fact.session_id === id);
}

function complain(error, again) {
  if (!error) return trouble.replaceChildren();
  if (trouble.textContent.startsWith(error.message)) return; // already shown
  trouble.replaceChildren(el("div.notice.error", {}, el("p", {}, error.message), button("Try again", again)));
}

function drawSummary() {
  summaryPart.draw({ sessionId, temporary, summary, known });
  note.textContent = describeFacts();
}

// -- watching

function turnEnded({ sessionId: id, turn }) {
  if (!id || id !== shown.sessionId) return;
  const stored = !turn?.error || turn.userMessageId || (id === sessionId && summary);
  if (stored) watch(WATCH_FIRST);
}

/** Poll the summary of the chat on display until it is settled. */
function watch(pause) {
  stopWatching();
  watching = { pause, timer: null };
  lookSoon(pause);
}

function stopWatching() {
  clearTimeout(watching?.timer);
  watching = null;
}

function lookSoon(pause) {
  if (!watching || document.hidden) return;
  clearTimeout(watching.timer);
  const mine = watching;
  watching.timer = setTimeout(() => look(mine), pause);
}

async function look(mine) {
  const id = shown.sessionId;
  try {
    const seen = await api.get(api.summaryPath(id));
    if (mine !== watching) return;
    const before = id === sessionId ? (summary?.latest?.version ?? 0) : 0;
    const newFacts = (seen.latest?.version ?? 0) === before ? null : await readFacts(id);
    if (mine !== watching) return;
    [sessionId, summary, known] = [id, seen, true];
    complain(null);
    drawSummary();
    if (newFacts) drawFacts(newFacts);
    if (settled()) return stopWatching();
  } catch (error) {
    if (mine !== watching) return;
    if (error.status === 404) return stopWatching(); // erased meanwhile
    complain(error, () => lookSoon(0));
  }
  mine.pause = Math.min(WATCH_MOST, mine.pause * WATCH_SLOWER);
  lookSoon(mine.pause);
}

/** Whether the summary will not change by itself: it is up to date, failed permanently, or waits for more turns. */
function settled() {
  const { state, job_id: job } = summary;
  return ["none", "current", "failed"].includes(state) || (state === "pending" && !job);
}

// -- changes

async function refresh() {
  const stands = await api.post(`${api.summaryPath(sessionId)}/refresh`);
  if (stands.session_id !== sessionId) return;
  summary = stands;
  drawSummary();
  watch(WATCH_FIRST);
}

function changedByHand(stands) {
  if (stands.session_id === sessionId) {
    summary = stands;
    drawSummary();
  }
  sayChanged();
}

/** Notify the other panels of a change that this one already shows. */
function sayChanged() {
  emit("memory", { by: "panel" });
}

function forgetPerson() {
  stopWatching();
  asked++;
  [sessionId, summary, known] = [null, null, false];
  closeAdd();
  render(null, list);
  drawFacts([]);
  summaryPart.reset();
}

function openAdd() {
  const close = () => {
    closeAdd();
    addButton.focus();
  };
  const save = async ({ scope, ...values }) => {
    const inChat = scope === "session" && sessionId ? { session_id: sessionId } : {};
    const fact = await api.post("/api/facts", { ...values, ...inChat });
    close();
    sayChanged();
    await read();
    list.querySelector(`[data-fact="${fact.id}"]`)?.focus();
    announce("Added");
  };
  addButton.hidden = true;
  render(html`<${FactForm} inSession=${Boolean(sessionId && summary)} action="Add" save=${save} cancel=${close} />`, addPlace);
}

function closeAdd() {
  render(null, addPlace);
  addButton.hidden = false;
}

// -- the list of facts

function drawFacts(found) {
  facts = ranked(found);
  const drawn = allShown ? facts : facts.slice(0, FACTS_SHOWN);
  render(html`<${FactList} label="Facts" facts=${drawn} changed=${changedFact} />`, list);
  count.textContent = facts.length ? number(facts.length) : "";
  more.hidden = drawn.length === facts.length;
  more.textContent = `Show all ${number(facts.length)} facts`;
  note.textContent = describeFacts();
}

function changedFact(fact) {
  drawFacts(facts.map((one) => (one.id === fact.id ? fact : one)));
  sayChanged();
}

function describeFacts() {
  if (!known) return "";
  if (!facts.length) return "Nothing is remembered yet. Facts appear as you chat, or add one yourself.";
  if (temporary) return "Known from your other chats, and used here. Nothing is added.";
  if (sessionId) return "From this chat, and what holds in all of them.";
  return "What Recap already knows from your other chats.";
}

/** Scroll to the facts.  Their heading stays visible below a long summary. */
function toFacts() {
  (facts.length ? list : note).scrollIntoView({ block: "center" });
  list.querySelector('li[tabindex="0"]')?.focus();
}

function showAll() {
  const last = list.querySelector("li:last-child");
  allShown = true;
  drawFacts(facts);
  last?.nextElementSibling?.focus();
}
