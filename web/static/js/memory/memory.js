// The right panel: the summary of the chat on display and the person's facts, updated while the mini model works.
//
// Guarantee: old content stays until new content has arrived, so nothing flickers, jumps or loses focus.  The summary
// is polled only from the end of a turn until it is settled, and only while the page is visible.  Facts are reloaded
// when the version of the summary changes.

import * as api from "../page/api.js";
import { announce, byId } from "../page/dom.js";
import { createRef, html, render } from "../page/html.js";
import { FactForm } from "./fact_form.js";
import { FactList, ranked } from "./facts.js";
import { emit, on, shown } from "../page/state.js";
import { Summary } from "./summary.js";
import { Trouble } from "./trouble.js";
import { number, text } from "../page/texts.js";

const WATCH_FIRST = 400; // milliseconds between polls of a summary that is being updated
const WATCH_MOST = 2000;
const WATCH_SLOWER = 1.4;
const FACTS_SHOWN = 40; // before the person asks for all

const NOTHING = {
  sessionId: null, // whose memory is shown; shown.sessionId may already be another one
  temporary: false,
  summary: null, // from the API; null: there is none
  facts: [], // the best first
  known: false, // whether the summary and the facts are loaded
  allShown: false, // whether more than FACTS_SHOWN facts are shown
  adding: false, // whether the form for a new fact is open
  trouble: {}, // {message, again}
};

const body = byId("memory-body");
const addButton = createRef();
let panel = NOTHING;
let asked = 0; // counts requests, to ignore responses to earlier ones
let watching = null; // {pause, timer}, while the summary is expected to change

export function startMemory() {
  show({});
  on("session", open);
  on("turn", turnEnded);
  on("memory", read);
  on("person", forgetPerson);
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(watching?.timer) : lookSoon(0)));
}

/** Draw the panel with these changes. */
function show(changes) {
  const before = panel.facts;
  panel = { ...panel, ...changes };
  render(html`<${Panel} ...${panel} />`, body);
  if (panel.facts !== before) emit("facts", panel.facts);
}

// -- reading

function open() {
  stopWatching();
  if (shown.sessionId !== panel.sessionId || shown.temporary !== panel.temporary) body.setAttribute("aria-busy", "true");
  return read();
}

/** Load and show the memory of the chat on display. */
async function read() {
  const mine = ++asked;
  const { sessionId, temporary } = shown;
  const [summary, facts] = await Promise.allSettled([readSummary(sessionId), readFacts(sessionId)]);
  if (mine !== asked) return;
  const error = summary.reason ?? facts.reason;
  const trouble = error ? { message: error.message, again: read } : {};
  const other = sessionId !== panel.sessionId || temporary !== panel.temporary;
  body.removeAttribute("aria-busy");
  if (error && !other) return show({ trouble }); // the content on display may be old, but belongs to this chat
  if (other) body.scrollTop = 0;
  const found = error ? { summary: null, facts: [] } : { summary: summary.value, facts: facts.value };
  show({ sessionId, temporary, trouble, known: !error, allShown: panel.allShown && !other, ...found });
  if (found.summary && !settled(found.summary)) watch();
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
  const facts = await api.all("/api/facts", { session_id: id }).catch((error) => {
    if (id && error.status === 404) return api.all("/api/facts");
    throw error;
  });
  return ranked(facts.filter((fact) => fact.scope === "user" || fact.session_id === id));
}

// -- watching

function turnEnded({ sessionId: id, turn }) {
  if (!id || id !== shown.sessionId) return;
  const stored = !turn?.error || turn.userMessageId || (id === panel.sessionId && panel.summary);
  if (stored) watch();
}

/** Poll the summary of the chat on display until it is settled. */
function watch() {
  stopWatching();
  watching = { pause: WATCH_FIRST, timer: null };
  lookSoon(WATCH_FIRST);
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
    const summary = await api.get(api.summaryPath(id));
    if (mine !== watching) return;
    const before = id === panel.sessionId ? (panel.summary?.latest?.version ?? 0) : 0;
    const facts = (summary.latest?.version ?? 0) === before ? panel.facts : await readFacts(id);
    if (mine !== watching) return;
    if (facts !== panel.facts) emit("summarised", { sessionId: id });
    show({ sessionId: id, summary, facts, known: true, trouble: {} });
    if (settled(summary)) return stopWatching();
  } catch (error) {
    if (mine !== watching) return;
    if (error.status === 404) return stopWatching(); // erased meanwhile
    show({ trouble: { message: error.message, again: () => lookSoon(0) } });
  }
  mine.pause = Math.min(WATCH_MOST, mine.pause * WATCH_SLOWER);
  lookSoon(mine.pause);
}

/** Whether a summary will not change by itself: it is up to date, failed permanently, or waits for more turns. */
const settled = ({ state, job_id: job }) =>
  ["none", "current", "failed"].includes(state) || (state === "pending" && !job);

// -- changes

async function refresh() {
  try {
    const summary = await api.post(`${api.summaryPath(panel.sessionId)}/refresh`);
    if (summary.session_id !== panel.sessionId) return;
    show({ summary, trouble: {} });
    watch();
  } catch ({ message }) {
    show({ trouble: { message, again: refresh } });
  }
}

function summaryChanged(summary) {
  if (summary.session_id === panel.sessionId) show({ summary });
  emit("memory");
}

function factChanged(fact) {
  show({ facts: ranked(panel.facts.map((one) => (one.id === fact.id ? fact : one))) });
  emit("memory");
}

function forgetPerson() {
  stopWatching();
  asked++;
  render(null, body); // with all open forms
  show(NOTHING);
}

async function add({ scope, ...values }) {
  const inChat = scope === "session" && panel.sessionId ? { session_id: panel.sessionId } : {};
  const fact = await api.post("/api/facts", { ...values, ...inChat });
  closeAdd();
  emit("memory");
  await read();
  body.querySelector(`[data-fact="${fact.id}"]`)?.focus();
  announce(text("memory.added"));
}

function closeAdd() {
  show({ adding: false });
  addButton.current.focus();
}

// -- the panel

function Panel({ sessionId, temporary, summary, facts, known, allShown, adding, trouble }) {
  const few = allShown ? facts : facts.slice(0, FACTS_SHOWN);
  return html`
    <${Trouble} ...${trouble} />
    <${Summary} ...${{ sessionId, temporary, summary, known, refresh }} changed=${summaryChanged} />
    <section class="memory-part" aria-labelledby="facts-heading">
      <header class="memory-head">
        <h3 id="facts-heading">
          <button class="heading" onClick=${toFacts}>
            ${text("memory.facts")} <span class="muted">${facts.length ? number(facts.length) : ""}</span>
          </button>
        </h3>
        <div class="memory-tools">
          <button class="quiet" ref=${addButton} hidden=${adding} onClick=${() => show({ adding: true })}>
            ${text("memory.add")}
          </button>
        </div>
      </header>
      <p class="memory-about" id="facts-about">${known && describe({ sessionId, temporary, facts })}</p>
      ${adding &&
      html`
        <div>
          <${FactForm} inSession=${Boolean(summary)} action=${text("memory.add")} save=${add} cancel=${closeAdd} />
        </div>
      `}
      <${FactList} label=${text("memory.facts")} facts=${few} changed=${factChanged} />
      ${few.length < facts.length &&
      html`<button onClick=${showAll}>${text("memory.show_all", { count: facts.length })}</button>`}
    </section>
  `;
}

function describe({ sessionId, temporary, facts }) {
  if (!facts.length) return text("memory.about.no_facts");
  if (temporary) return text("memory.about.temporary");
  if (sessionId) return text("memory.about.chat");
  return text("memory.about.no_chat");
}

/** Scroll to the facts.  Their heading stays visible below a long summary. */
function toFacts() {
  byId("facts-about").scrollIntoView({ block: "center" });
  body.querySelector('.fact[tabindex="0"]')?.focus();
}

function showAll() {
  show({ allShown: true });
  body.querySelectorAll(".fact")[FACTS_SHOWN].focus();
}
