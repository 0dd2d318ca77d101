// Components, by Preact and htm: `html` describes elements, and Preact changes only what differs from the last time.
// Both need no build step.  Strings become text nodes, as in dom.js.
//
//   const Greeting = ({ name }) => html`<p class="greeting">Hello ${name}</p>`;
//   render(html`<${Greeting} name="Ada" />`, byId("here"));
//
// A component with state is a class.  An element that only moves keeps its focus; one that goes takes it along.

import htm from "../../vendor/htm.mjs";
import { h } from "../../vendor/preact.mjs";

export { Component, createRef, render } from "../../vendor/preact.mjs";
export const html = htm.bind(h);
