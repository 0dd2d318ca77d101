// Components, by Preact and htm: `html` describes elements, and Preact changes only what differs from the last time.
// Both need no build step.  Strings become text nodes, as in dom.js.
//
//   const Greeting = ({ name }) => html`<p class="greeting">Hello ${name}</p>`;
//   render(html`<${Greeting} name="Ada" />`, byId("here"));
//
// A component with state is a class.  An element that only moves keeps its focus; one that goes takes it along.

import htm from "../../vendor/htm.mjs";
import { Component, createRef, h } from "../../vendor/preact.mjs";

export { Component, createRef, render } from "../../vendor/preact.mjs";
export const html = htm.bind(h);

/** An element with content that is made without Preact: `make(of)` returns its nodes, anew when `of` changes. */
export class Filled extends Component {
  place = createRef();

  componentDidMount() {
    this.place.current.replaceChildren(...[this.props.make(this.props.of)].flat());
  }

  componentDidUpdate({ of }) {
    if (of !== this.props.of) this.componentDidMount();
  }

  render({ of, make, ...rest }) {
    return html`<div ...${rest} ref=${this.place} />`;
  }
}
