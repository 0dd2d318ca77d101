// A part of the right panel: its heading, which stays in view, the buttons beside it, and what it holds.

import { html } from "../page/html.js";

export const Part = ({ title, heading = title, tools, hidden, children }) => html`
  <section class="memory-part" aria-label=${title} hidden=${hidden}>
    <header class="memory-head">
      <h3>${heading}</h3>
      <div class="memory-tools">${tools}</div>
    </header>
    ${children}
  </section>
`;
