// A form to edit a message of the person.

import { tooMuch, typed } from "./composer.js";
import { button, el, sends } from "../page/dom.js";
import { text } from "../page/texts.js";

/** Calls `send(words)` with a text that fits, `complain(problem)` before that, and `leave()` when it is cancelled. */
export function editor(message, { send, complain, leave }) {
  const words = el("textarea", { value: message.content, rows: 4, "aria-label": text("chat.message.edited") });
  const save = () => {
    const changed = typed(words);
    complain(tooMuch(changed));
    if (changed && !tooMuch(changed)) send(changed);
  };
  words.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      leave();
    }
    if (sends(event)) {
      event.preventDefault();
      save();
    }
  });
  return el("article.message.user", { "aria-label": text("chat.message.editing") },
    el("div.edit", {}, words,
      el("div.row.end", {}, el("span.muted.small.grow", {}, text("chat.message.edit_means")),
        button(text("page.cancel"), leave), button(text("page.send"), save, { kind: "primary" }))));
}
