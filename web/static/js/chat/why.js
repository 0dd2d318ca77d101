// Explains a reply: what was recalled and why, which facts were in the prompt, and how many tokens it took.

import * as api from "../page/api.js";
import { button, el, svg } from "../page/dom.js";
import { date, number, plural, when } from "../page/words.js";

// Labels for the parts of a score, by their names in the API.
const PARTS = { words: "words", meaning: "meaning", neighbours: "messages around it", session: "its chat", time: "time" };
const FACT_PARTS = { importance: "importance", recency: "recency", use: "use", relevance: "fits the message" };

let jump = () => {};

/** Set the function that shows a message.  Called once, at the start. */
export function onJump(jumpTo) {
  jump = jumpTo;
}

/** The button under a reply that opens the explanation inside `item`. */
export function whyButton(turn, item) {
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
      try {
        const memory = turn.memory ?? (await read(turn));
        panel.replaceChildren(...explanation(memory, turn.usage));
      } catch (error) {
        panel.replaceChildren(el("p.notice.error", {}, error.message));
      }
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

function explanation(memory, usage) {
  return [recall(memory), tokens(usage), prompt(memory), facts(memory)].filter(Boolean);
}

function recall(memory) {
  const { excerpts } = memory;
  const calls = memory.recall.calls ?? [];
  return el(
    "div",
    {},
    el("h4", {}, excerpts.length ? `Recalled ${plural(excerpts.length, "passage")}` : "Nothing was recalled for the prompt"),
    el("p", {}, `${sentence(memory.recall.reason)}`),
    calls.length > 0 && el("ul", {}, calls.map(call)),
    excerpts.length > 0 && el("ul", {}, excerpts.map((excerpt) => el("li", {}, passage(excerpt)))),
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

const speaker = (message) => message.name || (message.role === "user" ? "You" : "Recap");

function facts(memory) {
  if (!memory.facts.length) return null;
  return el(
    "details",
    {},
    el("summary", {}, `${plural(memory.facts.length, "fact")} in the prompt`),
    el("ul", {}, memory.facts.map((fact) => {
      const parts = Object.entries(fact.score ?? {}).filter(([name, value]) => name in FACT_PARTS && value > 0.005);
      return el("li", {},
        fact.text, fact.pinned && [" ", el("span.badge", {}, "pinned")],
        el("div.parts", {}, parts.map(([name, value]) => el("span", {}, `${FACT_PARTS[name]} ${value.toFixed(2)}`))),
      );
    })),
  );
}

function prompt(memory) {
  const { head_version: version } = memory.summary;
  const { messages, dropped } = memory.tail;
  const held = [
    version && `version ${version} of the summary`,
    messages && `${plural(messages, "earlier message")} of this chat word for word`,
  ].filter(Boolean);
  const left = dropped ? ` ${plural(dropped, "earlier message")} did not fit.` : "";
  return el("p", {}, `Besides your message, the prompt contained ${held.length ? held.join(" and ") : "nothing else of this chat"}.${left}`);
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

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "");
