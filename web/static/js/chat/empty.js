// What a chat shows before its first message: a short introduction to Recap.
import { html } from "../page/html.js";
import { text } from "../page/words.js";

const STEPS = ["talk", "watch", "back"];
const TRIES = [text("chat.empty.tries.name"), text("chat.empty.tries.work"), text("chat.empty.tries.ask")];
const step = (name) => html`<li><span><strong>${text(`chat.empty.steps.${name}`)}</strong> ${text(`chat.empty.how.${name}`)}</span></li>`;

/** `write(text)` puts an example into the message box. */
export function Empty({ temporary, write }) {
  const [title, ...parts] = temporary
    ? ["chat.empty.temporary_title", html`<p>${text("chat.empty.temporary_how")}</p>`]
    : [
        "chat.empty.title",
        html`<ol>${STEPS.map(step)}</ol>`,
        html`<div class="tries">
          ${TRIES.map((words) => html`<button onClick=${() => write(words)}>${words}</button>`)}
        </div>`,
      ];
  return html`<section class="empty"><h2>${text(title)}</h2>${parts}</section>`;
}
