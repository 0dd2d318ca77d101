// Steps through the versions of a message: what it said before it was edited, and the replies it got before.

import { html } from "../page/html.js";
import { text } from "../page/texts.js";

/** `ids` are those of all versions, and `shown` is the one on display.  `show(id)` shows another one. */
export function Versions({ ids, shown, show }) {
  const at = ids.indexOf(shown);
  const place = text("chat.message.version", { number: at + 1, count: ids.length });
  const step = (to, mark, label) => html`
    <button class="quiet" aria-label=${label} title=${label} disabled=${!ids[to]} onClick=${() => show(ids[to])}>
      ${mark}
    </button>
  `;
  return html`
    <span class="version-steps when-free" role="group" aria-label=${place} title=${place}>
      ${step(at - 1, "‹", text("chat.message.version_before"))} ${at + 1}/${ids.length}
      ${step(at + 1, "›", text("chat.message.version_after"))}
    </span>
  `;
}
