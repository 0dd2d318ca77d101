// A message that a search found: its chat, its time, and its text from a little before the first word that was found.
import { html } from "../page/html.js";
import { speaker, text, when } from "../page/words.js";
import { named } from "./session_row.js";

const BEFORE = 40; // characters shown before the first word that was found
const LETTER = "[\\p{sc=Latn}\\p{sc=Cyrl}\\p{sc=Grek}\\p{N}]"; // of scripts that part words by spaces

export const Hit = ({ hit, open }) => html`<button data-row class="hit" onClick=${open}>
    <span class="hit-title cut">${named(hit)}</span>
    <span class="when">${hit.role && text("chat.message.label", { speaker: speaker(hit), time: when(hit.created_at) })}</span>
    <span class="hit-text">${marked(hit)}</span>
  </button>`;

function marked({ text: statement, content: said, highlights }) {
  const content = statement ?? said;
  if (!highlights.length) return content;
  const longest = [...highlights].sort((a, b) => b.length - a.length);
  const words = longest.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|");
  const parts = content.split(new RegExp(`(?<!${LETTER})(${words})(?!${LETTER})`, "u"));
  const begins = parts[0].length > BEFORE ? `…${parts[0].slice(-BEFORE)}` : parts[0];
  return [begins, ...parts.slice(1).map((part, at) => (at % 2 ? part : html`<mark>${part}</mark>`))];
}
