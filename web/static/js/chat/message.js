// Displays one message: its text, its time, and its actions.

import { announce, button, el } from "../page/dom.js";
import { render } from "../page/markdown.js";
import { clock, modelName, moment, number, speaker } from "../page/words.js";
import { whyButton } from "./why.js";

const ENDS = {
  interrupted: "Stopped here",
  length: "Cut at the model's limit",
  cut_off: "The model broke off here",
};

/**
 * A stored message.  `turn` is the turn of a reply, with its cost and recall; `actions` are additional buttons.
 */
export function messageItem(message, { turn = null, actions = [] } = {}) {
  const own = message.role === "user" || message.role === "assistant";
  const item = el(
    `article.message.${own ? message.role : "other"}`,
    { "aria-label": `${speaker(message)}, ${clock(message.created_at)}`, dataset: { id: message.id } },
    own && !message.name ? null : el("div.who", {}, speaker(message)),
    body(message.role, message.content),
  );
  const meta = el("div.meta", {}, el("time", { dateTime: message.created_at, title: moment(message.created_at) }, clock(message.created_at)));
  if (turn?.finish_reason in ENDS) meta.append(el("span.badge.warn", {}, ENDS[turn.finish_reason]));
  if (turn?.model) meta.append(el("span", { title: "The model that wrote this" }, modelName(turn.model)));
  if (turn?.usage) meta.append(whyButton(turn, item, message.content));
  meta.append(copyButton(message.content), ...actions);
  item.append(meta);
  return item;
}

const FENCED = /\n?^```[^\n]*\n([^]*?)\n?^```[^\S\n]*$\n?/m; // one block of code

/** The text: replies are rendered as Markdown.  All other messages are shown as typed, with their blocks of code. */
export function body(role, text) {
  if (role === "assistant") return el("div.body.md", {}, render(text));
  const code = (words) => el("pre", { tabIndex: 0 }, el("code", {}, words));
  return el("div.body.typed", {}, text.split(FENCED).map((words, part) => (part % 2 ? code(words) : words)));
}

/** A reply in progress: `{item, show(turn)}`. */
export function replyInProgress() {
  const words = el("div.body.md", { hidden: true });
  const waiting = el("div.body.waiting.dots", {});
  const item = el("article.message.assistant", { "aria-label": "Recap, writing", "aria-busy": "true" }, words, waiting);
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
  if (lost) return "The connection to Recap broke off. What you read so far is kept. Trying again";
  if (stopping) return "Stopping";
  if (!heard) return reply ? "Waiting for the rest of the reply" : "A reply is being written";
  if (!memory) return "Looking back";
  const found = memory.excerpts.length;
  return found ? `Found ${number(found)} earlier ${found === 1 ? "passage" : "passages"}, writing` : "Writing";
}

function copyButton(text) {
  return button("Copy", async (event) => {
    const pressed = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      pressed.textContent = "Copied";
      announce("Copied");
    } catch {
      pressed.textContent = "The browser blocked this";
    }
    setTimeout(() => (pressed.textContent = "Copy"), 1500);
  }, { kind: "quiet" });
}
