// What a chat shows before its first message: a short introduction to Recap.

import { button, el } from "../page/dom.js";

const TRIES = [
  "My name is Ada, I live in Tallinn and I am allergic to peanuts.",
  "We are moving the shop to PostgreSQL by 12 March. MySQL is ruled out.",
  "What do you know about me?",
];

/** `write(text)` puts an example into the message box. */
export function emptyState({ temporary, write }) {
  if (temporary) {
    return el("section.empty", {},
      el("h2", {}, "A temporary chat"),
      el("p", {}, "It uses what is remembered about you, and nothing of it is stored: no message, no summary, no fact. It is gone when you leave or reload."));
  }
  return el("section.empty", {},
    el("h2", {}, "Say something worth remembering."),
    el("ol", {},
      el("li", {}, el("span", {}, el("strong", {}, "Talk. "), "Tell it what matters: names, dates, decisions, what you ruled out.")),
      el("li", {}, el("span", {}, el("strong", {}, "Watch. "), "A summary and facts appear under Memory. Each fact leads back to the words it came from; pin it, correct it, or forget it.")),
      el("li", {}, el("span", {}, el("strong", {}, "Come back. "), "In another chat, ask about it. Under each reply, “Why this answer” shows what was found, and how many tokens it took.")),
    ),
    el("div.tries", {}, TRIES.map((text) => button(text, () => write(text)))),
  );
}
