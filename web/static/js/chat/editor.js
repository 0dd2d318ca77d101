// The form to edit a message of the person.
import { EditForm } from "../memory/edit_form.js";
import { PHONE } from "../page/dom.js";
import { html } from "../page/html.js";
import { text } from "../page/words.js";
import { filesOf, wordsOf } from "./attachments.js";
import { tooMuch, typed } from "./composer.js";

export function Editor({ message, send, leave }) {
  const save = async ({ words }) => {
    const changed = typed(words);
    if (tooMuch(changed)) throw new Error(tooMuch(changed));
    if (changed) send(message, changed);
  };
  return html`<article class="message user" aria-label=${text("chat.message.editing")}>
      <${EditForm} class="edit" action=${text("page.send")} manyLines=${PHONE} save=${save} cancel=${leave}>
        <textarea name="words" rows="4" defaultValue=${wordsOf(message)} aria-label=${text("chat.message.edited")} />
        <p class="muted small">${text("chat.message.edit_means")} ${!filesOf(message) && text("chat.attach.not_again")}</p>
      <//>
    </article>`;
}
