// Explains a reply: which words of its chat it may rest on, what was recalled and why, which facts were in the prompt,
// and how many tokens it took.

import * as api from "../page/api.js";
import { button, el, svg } from "../page/dom.js";
import { hasText, number, text } from "../page/texts.js";
import { date, shortened, speaker, when } from "../page/words.js";

const NEAREST = 2; // messages of the chat that are shown
const QUOTED = 300; // characters of each

let jump = () => {};
let reveal = () => {};

/** Set the functions that go to a message, and that bring an element into view.  Called once, at the start. */
export function onShow({ jumpTo, bringIntoView }) {
  jump = jumpTo;
  reveal = bringIntoView;
}

/** The button under a reply that opens the explanation inside `item`. */
export function whyButton(turn, item, reply) {
  let shown = null;
  const label = text("chat.why.button", { tokens: turn.usage.prompt_tokens });
  const toggle = button(label, async () => {
    if (shown) {
      shown.remove();
      shown = null;
    } else {
      shown = el("section.why", { "aria-label": text("chat.why.title") }, el("p.muted.dots", {}, text("chat.why.reading")));
      item.append(shown);
      const panel = shown;
      reveal(panel);
      try {
        const [memory, near] = await Promise.all([turn.memory ?? read(turn), nearest(turn, reply)]);
        panel.replaceChildren(thisChat(memory, near), recall(memory), ...facts(memory), tokens(turn.usage));
      } catch (error) {
        panel.replaceChildren(el("p.notice.error", {}, error.message));
      }
      reveal(panel);
    }
    toggle.setAttribute("aria-expanded", String(shown !== null));
  }, { kind: "quiet", "aria-expanded": "false" });
  return toggle;
}

async function read(turn) {
  const path = `${api.sessionPath(turn.session_id)}/turns/${turn.message_id}`;
  turn.memory = (await api.get(path)).memory;
  return turn.memory;
}

/** The person's earlier messages in the chat that share most words with the reply, as excerpts. */
async function nearest(turn, reply) {
  const q = reply.replace(/[^\p{L}\p{N}]+/gu, " ").trim().slice(0, 2000);
  if (!turn.session_id || !q) return [];
  const { results } = await api.get("/api/search", { q, session_id: turn.session_id, role: "user", limit: 10 });
  const earlier = results.filter((hit) => hit.highlights.length && hit.message_id < turn.user_message_id).slice(0, NEAREST);
  return earlier.map((hit) => {
    const message = { ...hit, id: hit.message_id, content: shortened(hit.content, QUOTED) };
    return { ...hit, title: text("chat.why.to_message"), messages: [message], hits: [message.id] };
  });
}

function thisChat(memory, near) {
  const { head_version: version } = memory.summary;
  const { messages, dropped } = memory.tail;
  const held = [
    messages && text("chat.why.read_messages", { count: messages }),
    version && text("chat.why.read_summary", { version }),
  ].filter(Boolean);
  const what = held.length > 1 ? text("chat.why.read_both", { messages: held[0], summary: held[1] }) : held[0];
  return el(
    "div",
    {},
    el("h2", {}, text("chat.why.this_chat")),
    el("p", {}, what ? text("chat.why.read", { what }) : text("chat.why.read_nothing")),
    dropped > 0 && el("p", {}, text("chat.why.dropped", { count: dropped })),
    near.length > 0 && [el("p", {}, text("chat.why.nearest")), passages(near)],
  );
}

const passages = (excerpts) => el("ul", {}, excerpts.map((excerpt) => el("li", {}, passage(excerpt))));

function recall(memory) {
  const { excerpts } = memory;
  const calls = memory.recall.calls ?? [];
  const told = memory.recall.reason;
  const reason = /^(has|refers|points|speaks) /.test(told) ? text("chat.why.your_message", { reason: told }) : told;
  return el(
    "div",
    {},
    el("h2", {}, text("chat.why.further_back")),
    el("p", {}, text(excerpts.length ? "chat.why.recalled" : "chat.why.nothing_recalled", { reason, count: excerpts.length })),
    calls.length > 0 && el("ul", {}, calls.map(call)),
    excerpts.length > 0 && passages(excerpts),
  );
}

function call(made) {
  const asked = [
    made.query && text("chat.why.query", { words: made.query }),
    made.after && text("chat.why.from", { day: date(made.after) }),
    made.before && text("chat.why.to", { day: date(made.before) }),
  ].filter(Boolean).join(" ");
  const found = made.error ? made.error : text("chat.why.passages", { count: made.excerpts });
  return el("li.muted", {}, text("chat.why.looked_back", { asked, found }));
}

function passage(excerpt) {
  const hits = new Set(excerpt.hits);
  const first = excerpt.messages.find((message) => hits.has(message.id)) ?? excerpt.messages[0];
  const parts = Object.entries(excerpt.why).filter(([, value]) => value > 0.005);
  return el(
    "div.excerpt",
    {},
    el("div.row", {},
      button(excerpt.title || text("chat.why.a_chat"), () => jump(excerpt.session_id, first.id), { kind: "link", title: text("chat.why.to_words") }),
      el("span.muted.small", {}, when(first.created_at)),
    ),
    el("blockquote", {}, excerpt.messages.map((message) =>
      el("div", {}, el("span.muted", {}, `${speaker(message)}: `), hits.has(message.id) ? el("mark", {}, message.content) : message.content),
    )),
    el("div.parts", {}, el("span", {}, `${text("chat.why.score")} ${excerpt.score.toFixed(2)}`), parts.map(scorePart)),
  );
}

function facts(memory) {
  if (!memory.facts.length) return [];
  return [el(
    "details",
    {},
    el("summary", {}, text("chat.why.facts", { count: memory.facts.length })),
    el("ul", {}, memory.facts.map((fact) => {
      const parts = Object.entries(fact.score ?? {}).filter(([name, value]) => name !== "total" && value > 0.005);
      return el("li", {},
        fact.source_message_id ? button(fact.text, () => jump(fact.session_id, fact.source_message_id), { kind: "link", title: text("chat.why.to_source") }) : fact.text,
        fact.pinned && [" ", el("span.badge", {}, text("chat.why.pinned"))],
        el("div.parts", {}, parts.map(scorePart)),
      );
    })),
  )];
}

/** A part of a score, by its name in the API. */
function scorePart([name, value]) {
  const key = `chat.why.parts.${name}`;
  return el("span", {}, `${hasText(key) ? text(key) : name} ${value.toFixed(2)}`);
}

function tokens(usage) {
  const most = Math.max(usage.prompt_tokens, usage.full_history_tokens, 1);
  const share = usage.saved_tokens / Math.max(1, usage.full_history_tokens);
  const saved = usage.saved_tokens > 0
    ? text("chat.why.saved", { tokens: usage.saved_tokens, share: share * 100 })
    : text("chat.why.unsaved");
  const bar = (kind, value) => svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: kind, width: String((100 * value) / most), height: "10", rx: "1" }));
  return el(
    "div",
    {},
    el("h2", {}, text(usage.estimated ? "chat.why.tokens_estimated" : "chat.why.tokens")),
    el("div.tokens", {},
      el("span", {}, text("chat.why.sent")), bar("bar-sent", usage.prompt_tokens), el("span", {}, number(usage.prompt_tokens)),
      el("span", {}, text("chat.why.full")), bar("bar-full", usage.full_history_tokens), el("span", {}, number(usage.full_history_tokens)),
    ),
    el("p.muted", {}, `${saved} ${text("chat.why.reply_took", { tokens: usage.completion_tokens })}`),
  );
}
