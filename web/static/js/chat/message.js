// Displays one message: its text, its time, what Recap remembered of it, and its actions.

import * as api from "../page/api.js";
import { codeBlock, colour } from "../page/code.js";
import { announce, button, copyButton, el } from "../page/dom.js";
import { render } from "../page/markdown.js";
import { emit } from "../page/state.js";
import { text, textParts } from "../page/texts.js";
import { clock, modelName, moment, speaker } from "../page/words.js";
import { whyButton } from "./why.js";

const ENDS = ["interrupted", "length", "cut_off"]; // reasons that are told under a reply

/**
 * A stored message.  `turn` is the turn of a reply, with its cost and recall, and `facts` are those that its turn
 * brought; `actions` are additional buttons.
 */
export function messageItem(message, { turn = null, facts = [], actions = [] } = {}) {
  const own = message.role === "user" || message.role === "assistant";
  const label = text("chat.message.label", { speaker: speaker(message), time: clock(message.created_at) });
  const item = el(
    `article.message.${own ? message.role : "other"}`,
    { "aria-label": label, dataset: { id: message.id } },
    own && !message.name ? null : el("div.who", {}, speaker(message)),
    body(message.role, message.content),
  );
  if (facts.length) item.append(el("p.remembered", {}, textParts("chat.message.remembered", { facts: facts.map(remembered) })));
  const meta = el("div.meta", {}, el("time", { dateTime: message.created_at, title: moment(message.created_at) }, clock(message.created_at)));
  if (ENDS.includes(turn?.finish_reason)) meta.append(el("span.badge.warn", {}, text(`chat.message.ends.${turn.finish_reason}`)));
  if (turn?.model) meta.append(el("span", { title: text("chat.message.model") }, modelName(turn.model)));
  if (turn?.usage) meta.append(whyButton(turn, item, message.content));
  meta.append(copyButton(message.content), ...actions);
  item.append(meta);
  return item;
}

/** A fact with a button that forgets it. */
function remembered(fact) {
  const trouble = el("span.trouble", { role: "alert" });
  const undo = button(text("chat.message.undo"), async () => {
    try {
      await api.del(`/api/facts/${fact.id}`);
    } catch (error) {
      if (error.status !== 404) return void (trouble.textContent = error.message); // 404: it is already forgotten
    }
    announce(text("chat.message.forgotten"));
    emit("memory");
  }, { kind: "link", "aria-label": text("chat.message.undo_means", { fact: fact.text }), title: text("chat.message.undo_means", { fact: fact.text }) });
  return el("span.fact-new", {}, fact.text, " ", undo, trouble);
}

const FENCED = /\n?^```[^\S\n]*(\S*)[^\n]*\n([^]*?)\n?^```[^\S\n]*$\n?/m; // one block of code, its language and its text

/** The text: replies are rendered as Markdown.  All other messages are shown as typed, with their blocks of code. */
export function body(role, words) {
  const reply = role === "assistant";
  const element = el(`div.body.${reply ? "md" : "typed"}`, {}, reply ? render(words) : typed(words));
  colour(element);
  return element;
}

function typed(words) {
  const parts = words.split(FENCED); // words, then language, code and words again and again
  return parts.map((part, at) => (at % 3 === 0 ? part : at % 3 === 2 && codeBlock(part, parts[at - 1])));
}

/** A reply in progress: `{item, show(turn)}`. */
export function replyInProgress() {
  const words = el("div.body.md", { hidden: true });
  const waiting = el("div.body.waiting.dots", {});
  const item = el("article.message.assistant", { "aria-label": text("chat.message.writing"), "aria-busy": "true" }, words, waiting);
  let drawn = null;
  let due = false;
  const draw = () => {
    due = false;
    if (drawn) words.replaceChildren(render(drawn));
  };
  return {
    item,
    show(turn) {
      waiting.textContent = doing(turn);
      waiting.hidden = Boolean(turn.reply) && turn.heard && !turn.stopping;
      if (!turn.reply) return;
      words.hidden = false;
      drawn = turn.reply;
      if (!due) {
        due = true;
        requestAnimationFrame(draw);
      }
    },
  };
}

function doing({ lost, stopping, heard, reply, memory }) {
  if (lost) return text("chat.message.lost");
  if (stopping) return text("chat.message.stopping");
  if (!heard) return reply ? text("chat.message.waiting_for_rest") : text("chat.message.waiting_for_reply");
  if (!memory) return text("chat.message.looking_back");
  const found = memory.excerpts.length;
  return found ? text("chat.message.found", { count: found }) : text("chat.message.replying");
}
