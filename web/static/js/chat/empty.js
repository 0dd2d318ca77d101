// What a chat shows before its first message: a short introduction to Recap.

import { html } from "../page/html.js";
import { text } from "../page/texts.js";

const STEPS = [
  ["chat.empty.talk", "chat.empty.talk_how"],
  ["chat.empty.watch", "chat.empty.watch_how"],
  ["chat.empty.back", "chat.empty.back_how"],
];
const TRIES = ["chat.empty.try_name", "chat.empty.try_work", "chat.empty.try_ask"];

/** `write(text)` puts an example into the message box. */
export function Empty({ temporary, write }) {
  const [title, ...parts] = temporary
    ? ["chat.empty.temporary_title", html`<p>${text("chat.empty.temporary_how")}</p>`]
    : [
        "chat.empty.title",
        html`<ol>
          ${STEPS.map(([name, how]) => html`<li><span><strong>${text(name)}</strong> ${text(how)}</span></li>`)}
        </ol>`,
        html`<div class="tries">
          ${TRIES.map((key) => html`<button onClick=${() => write(text(key))}>${text(key)}</button>`)}
        </div>`,
      ];
  return html`<section class="empty"><h2>${text(title)}</h2>${parts}</section>`;
}
