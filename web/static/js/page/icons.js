// The icons of buttons in rows.  They are hidden from screen readers, so each button needs a label of its own.

import { html } from "./html.js";

const PATHS = {
  pin: "M9.5 2.5 13.5 6.5 10.6 7.6 9.4 11.4 4.6 6.6 8.4 5.4Z M7 9 3 13",
  save: "M8 2.5 8 10 M5 7.2 8 10.2 11 7.2 M3 13 13 13",
  edit: "M3 13 3.6 10.2 10.6 3.2 12.8 5.4 5.8 12.4Z M9.2 4.6 11.4 6.8",
  forget:
    "M3 4.5 13 4.5 M6.3 4.5 6.3 2.8 9.7 2.8 9.7 4.5 M4.4 4.5 5 13.2 11 13.2 11.6 4.5 M6.8 7 6.8 10.8 M9.2 7 9.2 10.8",
};

export const Icon = ({ name }) => html`
  <svg viewBox="0 0 16 16" width="16" height="16" class="icon-${name}" aria-hidden="true">
    <path d=${PATHS[name]} />
  </svg>
`;
