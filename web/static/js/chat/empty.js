// What a chat shows before its first message: a short introduction to Recap.

import { button, el } from "../page/dom.js";
import { text } from "../page/texts.js";

const STEPS = [
  ["chat.empty.talk", "chat.empty.talk_how"],
  ["chat.empty.watch", "chat.empty.watch_how"],
  ["chat.empty.back", "chat.empty.back_how"],
];
const TRIES = ["chat.empty.try_name", "chat.empty.try_work", "chat.empty.try_ask"];

/** `write(text)` puts an example into the message box. */
export function emptyState({ temporary, write }) {
  if (temporary) {
    return el("section.empty", {}, el("h2", {}, text("chat.empty.temporary_title")), el("p", {}, text("chat.empty.temporary_how")));
  }
  return el("section.empty", {},
    el("h2", {}, text("chat.empty.title")),
    el("ol", {}, STEPS.map(([name, how]) => el("li", {}, el("span", {}, el("strong", {}, text(name)), " ", text(how))))),
    el("div.tries", {}, TRIES.map((key) => button(text(key), () => write(text(key))))),
  );
}
