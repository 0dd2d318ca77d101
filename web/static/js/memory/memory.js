// The right panel: the summary of the chat on display and the person's facts, updated while the mini model works.
//
// Guarantee: old content stays until new content has arrived, so nothing flickers, jumps or loses focus. The summary is polled only from the end of a
// turn until it is settled, and only while the page is visible. Facts are reloaded when the version of the summary changes, and after a turn in which the
// model wrote some.
import * as api from "../page/api.js";
import { announce, byId } from "../page/dom.js";
import { Trouble, createRef, html, render } from "../page/html.js";
import { FactForm } from "./fact_form.js";
import { FactList, ranked } from "./facts.js";
import { LongTerm } from "./longterm.js";
import { showPanel } from "../page/panels.js";
import { Edge } from "../page/rows.js";
import { emit, holder, on, shown } from "../page/state.js";
import { Summary } from "./summary.js";
import { Tabs } from "../page/tabs.js";
import { number, text } from "../page/words.js";

const POLL = 800; // milliseconds between looks at a summary that is being updated
const FACTS_SHOWN = 40; // before the person comes near the last of them

const NOTHING = {
  sessionId: null, // whose memory is shown; shown.sessionId may already be another one
  temporary: false,
  summary: null, // from the API; null: there is none
  facts: [], // the best first
  known: false, // whether the summary and the facts are loaded
  allShown: false, // whether more than FACTS_SHOWN facts are shown
  adding: false, // whether the form for a new fact is open
  trouble: {}, // {message, again}
  tab: "facts",
};

const body = byId("memory-body");
const addButton = createRef();
let panel = NOTHING;
const visited = new Set(); // the ids of chats whose summaries are drawn, though hidden, so that their forms stay open
let asked = 0; // counts requests, to ignore responses to earlier ones
let timer; // of the next look at the summary, while it is expected to change

export function startMemory() {
  show({});
  on("session", open);
  on("turn", turnEnded);
  on("memory", read);
  on("person", forgetPerson);
  on("longterm", () => {
    show({ tab: "you" });
    showPanel("memory");
  });
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
  clearTimeout(timer);
  if (isOther(shown)) body.setAttribute("aria-busy", "true");
  return read();
}

const isOther = ({ sessionId, temporary }) => sessionId !== panel.sessionId || temporary !== panel.temporary;

/** Load and show the memory of the chat on display. */
async function read() {
  const mine = ++asked;
  const { sessionId, temporary } = shown;
  let found = { summary: null, facts: [], known: false };
  let trouble = {};
  try {
    const summary = sessionId && api.find(api.summaryPath(sessionId)); // null: the first message is not stored yet
    found = { summary: await summary, facts: await readFacts(sessionId), known: true };
  } catch ({ message }) {
    trouble = { message, again: read };
  }
  if (mine !== asked) return;
  const other = isOther({ sessionId, temporary });
  body.removeAttribute("aria-busy");
  if (!found.known && !other) return show({ trouble }); // the content on display may be old, but belongs to this chat
  if (other) body.scrollTop = 0;
  show({ sessionId, temporary, trouble, allShown: panel.allShown && !other, ...found });
  if (found.summary && !settled(found.summary)) watch();
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

async function turnEnded({ sessionId: id, turn }) {
  if (!id || id !== shown.sessionId) return;
  if (turn?.told.memory?.written?.length) await read(); // facts that the model wrote itself
  const stored = !turn?.error || turn.told.user_message_id || (id === panel.sessionId && panel.summary);
  if (stored) watch();
}

/** Poll the summary of the chat on display until it is settled. */
function watch() {
  clearTimeout(timer);
  timer = setTimeout(look, POLL);
}

async function look() {
  if (document.hidden) return watch();
  const id = shown.sessionId;
  const mine = asked;
  try {
    const summary = await api.find(api.summaryPath(id));
    const before = id === panel.sessionId ? (panel.summary?.latest?.version ?? 0) : 0;
    const facts = (summary?.latest?.version ?? 0) === before ? panel.facts : await readFacts(id);
    if (mine !== asked || !summary) return; // null: erased meanwhile
    if (facts !== panel.facts) emit("summarised", { sessionId: id });
    show({ sessionId: id, summary, facts, known: true, trouble: {} });
    if (!settled(summary)) watch();
  } catch ({ message }) {
    if (mine !== asked) return;
    show({ trouble: { message, again: look } });
    watch();
  }
}

/** Whether a summary will not change by itself: it is up to date, failed permanently, or waits for more turns. */
const settled = ({ state, job_id: job }) => ["none", "current", "failed"].includes(state) || (state === "pending" && !job);

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
  clearTimeout(timer);
  asked++;
  render(null, body); // with all open forms
  visited.clear();
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

function Panel({ tab, sessionId, temporary, summary, facts, known, allShown, adding, trouble }) {
  const few = allShown ? facts : facts.slice(0, FACTS_SHOWN);
  const tabs = [
    ["facts", text("memory.facts"), facts.length ? number(facts.length) : ""],
    ["summary", text("memory.summary.title"), summary?.error ? "!" : ""],
    ["you", text("memory.you")],
  ];
  const parts = {
    facts: () => html`<div class="row top">
        <p class="memory-about grow">${known && describe({ sessionId, temporary, facts })}</p>
        <button class="quiet" ref=${addButton} hidden=${adding || !holder.may.change} onClick=${() => show({ adding: true })}>${text("memory.add")}</button>
      </div>
      ${adding && html`<${FactForm} inSession=${Boolean(summary)} action=${text("memory.add")} save=${add} cancel=${closeAdd} />`}
      <${FactList} label=${text("memory.facts")} facts=${few} changed=${factChanged} />
      ${few.length < facts.length && html`<${Edge} more=${() => show({ allShown: true })} />`}
    `,
    summary: () =>
      [...visited.add(sessionId)].map((id) => {
        const own = id === sessionId ? { temporary, summary, known, refresh } : { hidden: true };
        return html`<${Summary} key=${id ?? ""} sessionId=${id} ...${own} changed=${summaryChanged} />`;
      }),
    you: () => html`<${LongTerm} />`,
  };
  return html`<${Trouble} ...${trouble} />
    <${Tabs} label=${text("page.memory")} names=${tabs} chosen=${tab} choose=${(name) => show({ tab: name })}>${(name) => parts[name]()}<//>`;
}

function describe({ sessionId, temporary, facts }) {
  if (!facts.length) return text("memory.about.no_facts");
  if (temporary) return text("memory.about.temporary");
  if (sessionId) return text("memory.about.chat");
  return text("memory.about.no_chat");
}
