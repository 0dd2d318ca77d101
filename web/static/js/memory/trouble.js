// A notice of what went wrong.  Screen readers read it out when it appears or changes.

import { html } from "../page/html.js";
import { text } from "../page/texts.js";

/** With `again` there is a button to try again.  `kind`: what the notice looks like. */
export const Trouble = ({ message, again, action = text("page.try_again"), kind = "error" }) => html`
  <div role="alert">
    ${message &&
    html`
      <div class="notice ${kind}">
        <p>${message}</p>
        ${again && html`<button type="button" onClick=${again}>${action}</button>`}
      </div>
    `}
  </div>
`;
