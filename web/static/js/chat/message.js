// Displays one message: its text, its time, and its actions.

import { announce, button, el } from "../page/dom.js";
import { render } from "../page/markdown.js";
import { clock, moment, number } from "../page/words.js";
import { whyButton } from "./why.js";

const SPEAKERS = { user: "You", assistant: "Recap", system: "System", tool: "Tool" };

/**
 * A stored message.  `turn` is the turn of a reply, with its cost and recall; `actions` are additional buttons.
 */
export function messageItem(message, { turn = null, actions = [] } = {}) {
  const speaker = message.name || SPEAKERS[message.role] || message.role;
  const own = message.role === "user" || message.role === "assistant";
  const item = el(
    `article.message.${own ? message.role : "other"}`,
    { "aria-label": `${speaker}, ${clock(message.created_at)}`, dataset: { id: message.id } },
    own && !message.name ? null : el("div.who", {}, speaker),
    body(message.role, message.content),
  );
  const meta = el("div.meta", {}, el("time", { dateTime: message.created_at, title: moment(message.created_at) }, clock(message.created_at)));
  if (turn?.finish_reason === "interrupted") meta.append(el("span.badge.warn", {}, "Stopped here"));
  if (turn?.finish_reason === "length") meta.append(el("span.badge.warn", {}, "Cut at the model's limit"));
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
  const words = el("div.body.md", {});
  const waiting = el("div.body.waiting.dots", {}, "Looking back");
  const item = el("article.message.assistant", { "aria-label": "Recap, writing", "aria-busy": "true" }, waiting);
  let drawn = null;
  let due = false;
  const draw = () => {
    due = false;
    if (drawn) words.replaceChildren(render(drawn));
  };
  return {
    item,
    show(turn) {
      waiting.textContent = turn.stopping ? "Stopping" : turn.memory ? recalled(turn.memory) : "Looking back";
      if (!turn.reply) return;
      if (!words.isConnected) waiting.replaceWith(words);
      drawn = turn.reply;
      if (!due) {
        due = true;
        requestAnimationFrame(draw);
      }
    },
  };
}

function recalled(memory) {
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
