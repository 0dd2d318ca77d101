// What went wrong: a notice, and a base for components that do what can fail.

import { Component, html } from "./html.js";
import { text } from "./texts.js";

/**
 * A notice that screen readers read out.  `told`: what the server said, for whoever runs it.  With `again` there is a
 * button to try again.  `kind`: what the notice looks like.
 */
export const Trouble = ({ message, told, again, action = text("page.try_again"), kind = "error" }) =>
  message &&
  html`
    <div class="notice ${kind}" role="alert">
      <p>${message}</p>
      ${told && html`<p class="small" lang="en">${told}</p>`}
      ${again && html`<button type="button" onClick=${again}>${action}</button>`}
    </div>
  `;

/** A component whose `state.trouble` has the properties of Trouble after an attempt that failed. */
export class Attempts extends Component {
  /**
   * Do something, and show if it fails.  Then `again()` tries again, if that is offered.  A later attempt overtakes it:
   * `isLast()`, which `deed` gets, is false from then on.
   */
  async attempt(deed, again) {
    const mine = (this.last = {});
    const isLast = () => mine === this.last;
    this.setState({ trouble: {} });
    try {
      await deed(isLast);
    } catch ({ message }) {
      if (isLast()) this.setState({ trouble: { message, again } });
    }
  }
}
