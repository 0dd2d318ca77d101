// Explains a reply: which words of its chat it may rest on, what was recalled and why, which facts were in the prompt,
// and how many tokens it took.

import * as api from "../page/api.js";
import { button, el, svg } from "../page/dom.js";
import { date, number, plural, shortened, speaker, when } from "../page/words.js";

// Labels for the parts of a score, by their names in the API.
const PARTS = { words: "words", meaning: "meaning", neighbours: "messages around it", session: "its chat", time: "time" };
const FACT_PARTS = { importance: "importance", recency: "recency", use: "use", relevance: "fits the message" };

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
  const label = `Why this answer · ${number(turn.usage.prompt_tokens)} tokens sent`;
  const toggle = button(label, async () => {
    if (shown) {
      shown.remove();
      shown = null;
    } else {
      shown = el("section.why", { "aria-label": "Why this answer" }, el("p.muted.dots", {}, "Reading"));
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
    return { ...hit, title: "Go to this message", messages: [message], hits: [message.id] };
  });
}

function thisChat(memory, near) {
  const { head_version: version } = memory.summary;
  const { messages, dropped } = memory.tail;
  const held = [
    messages && `${plural(messages, "earlier message")} word for word`,
    version && `version ${version} of the summary`,
  ].filter(Boolean);
  return el(
    "div",
    {},
    el("h4", {}, "From this chat"),
    el("p", {}, held.length ? `The model read ${held.join(" and ")}.` : "The model read only your message: nothing came before it."),
    dropped > 0 && el("p", {}, `${plural(dropped, "earlier message")} did not fit.`),
    near.length > 0 && [el("p", {}, "Your words that are closest to this reply:"), passages(near)],
  );
}

const passages = (excerpts) => el("ul", {}, excerpts.map((excerpt) => el("li", {}, passage(excerpt))));

function recall(memory) {
  const { excerpts } = memory;
  const calls = memory.recall.calls ?? [];
  const reason = `${/^(has|refers|points|speaks) /.test(memory.recall.reason) ? "your message " : ""}${memory.recall.reason}`;
  return el(
    "div",
    {},
    el("h4", {}, "From further back"),
    el("p", {}, excerpts.length ? `Recalled ${plural(excerpts.length, "passage")}: ${reason}.` : `Nothing was recalled: ${reason}.`),
    calls.length > 0 && el("ul", {}, calls.map(call)),
    excerpts.length > 0 && passages(excerpts),
  );
}

function call(made) {
  const range = [made.after && `from ${date(made.after)}`, made.before && `to ${date(made.before)}`].filter(Boolean).join(" ");
  const words = made.query ? ` for “${made.query}”` : "";
  const found = made.error ? made.error : plural(made.excerpts, "passage");
  return el("li.muted", {}, `The model looked back itself${words} ${range}: ${found}`);
}

function passage(excerpt) {
  const hits = new Set(excerpt.hits);
  const first = excerpt.messages.find((message) => hits.has(message.id)) ?? excerpt.messages[0];
  const parts = Object.entries(excerpt.why).filter(([, value]) => value > 0.005);
  return el(
    "div.excerpt",
    {},
    el("div.row", {},
      button(excerpt.title || "A chat", () => jump(excerpt.session_id, first.id), { kind: "link", title: "Go to these words" }),
      el("span.muted.small", {}, when(first.created_at)),
    ),
    el("blockquote", {}, excerpt.messages.map((message) =>
      el("div", {}, el("span.muted", {}, `${speaker(message)}: `), hits.has(message.id) ? el("mark", {}, message.content) : message.content),
    )),
    el("div.parts", {}, el("span", {}, `score ${excerpt.score.toFixed(2)}`), parts.map(([name, value]) => el("span", {}, `${PARTS[name] ?? name} ${value.toFixed(2)}`))),
  );
}

function facts(memory) {
  if (!memory.facts.length) return [];
  return [el(
    "details",
    {},
    el("summary", {}, `${plural(memory.facts.length, "fact")} in the prompt`),
    el("ul", {}, memory.facts.map((fact) => {
      const parts = Object.entries(fact.score ?? {}).filter(([name, value]) => name in FACT_PARTS && value > 0.005);
      return el("li", {},
        fact.source_message_id ? button(fact.text, () => jump(fact.session_id, fact.source_message_id), { kind: "link", title: "Go to the message it came from" }) : fact.text,
        fact.pinned && [" ", el("span.badge", {}, "pinned")],
        el("div.parts", {}, parts.map(([name, value]) => el("span", {}, `${FACT_PARTS[name]} ${value.toFixed(2)}`))),
      );
    })),
  )];
}

function tokens(usage) {
  const most = Math.max(usage.prompt_tokens, usage.full_history_tokens, 1);
  const share = usage.saved_tokens / Math.max(1, usage.full_history_tokens);
  const saved = usage.saved_tokens > 0
    ? `${number(usage.saved_tokens)} tokens saved, ${number(share * 100)} % of the full history.`
    : "While a chat is short, memory takes more tokens than the full history; it saves tokens as the chat grows.";
  const bar = (kind, value) => svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: kind, width: String((100 * value) / most), height: "10", rx: "1" }));
  return el(
    "div",
    {},
    el("h4", {}, usage.estimated ? "Tokens (estimated: the model gave no figures)" : "Tokens"),
    el("div.tokens", {},
      el("span", {}, "Sent"), bar("bar-sent", usage.prompt_tokens), el("span", {}, number(usage.prompt_tokens)),
      el("span", {}, "Full history"), bar("bar-full", usage.full_history_tokens), el("span", {}, number(usage.full_history_tokens)),
    ),
    el("p.muted", {}, `${saved} The reply took ${number(usage.completion_tokens)}.`),
  );
}
