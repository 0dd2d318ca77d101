// Components, by Preact and htm: `html` describes elements, and Preact changes only what differs from the last time.
// Both need no build step.  Strings become text nodes; only safe_html.js creates elements from HTML.
//
//   const Greeting = ({ name }) => html`<p class="greeting">Hello ${name}</p>`;
//   render(html`<${Greeting} name="Ada" />`, byId("here"));
//
// A component with state is a class.  An element that only moves keeps its focus; one that goes takes it along.
import htm from "../../vendor/htm.mjs";
import { Component as PreactComponent, createRef, h, render } from "../../vendor/preact.mjs";
import { text } from "./words.js";

export { createRef, render } from "../../vendor/preact.mjs";
export const html = htm.bind(h);

/** A component that can do what may fail: `state.trouble` has the properties of Trouble after such an attempt. */
export class Component extends PreactComponent {
  /** @type {any} */ state = {};

  /**
   * What it needs, it may read in a method `load()`, which resolves to changes of its state: when it is first drawn, and again by `read()`. Who is to
   * call that gets it by the property `drawn`: Preact gives refs to elements alone.
   */
  componentDidMount() {
    this.props.drawn?.(this);
    if ("load" in this) this.read();
  }

  read = () =>
    this.attempt(async (isLast) => {
      const found = await this["load"]();
      if (isLast()) this.setState(found);
    }, this.read);

  /** Do something that changes what is shown, and read that again. */
  perform = (deed) =>
    this.attempt(async () => {
      await deed();
      await this.read();
    });

  /**
   * Do something, with `state.busy` meanwhile, and show if it fails.  Then `again()` tries again, if that is offered.
   * A later attempt overtakes it: `isLast()`, which `deed` gets, is false from then on.
   */
  async attempt(deed, again) {
    const mine = (this.last = {});
    const isLast = () => mine === this.last;
    this.setState({ trouble: {}, busy: true });
    let trouble = {};
    try {
      await deed(isLast);
    } catch ({ message, told }) {
      trouble = { message, told, again };
    }
    if (isLast()) this.setState({ trouble, busy: false });
  }
}

/** What the server said, in English, for whoever runs it. */
export const Told = ({ words }) => words && html`<details class="small"><summary>${text("page.for_operators")}</summary><p lang="en">${words}</p></details>`;

/**
 * A notice that screen readers read out.  `told`: what the server said, for whoever runs it.  With `again` there is a
 * button to try again.  `kind`: what the notice looks like.
 */
export const Trouble = ({ message, told, again, action = text("page.try_again"), kind = "error" }) => message &&
  html`<div class="notice ${kind}" role="alert">
      <p>${message}</p>
      <${Told} words=${told} />
      ${again && html`<button type="button" onClick=${again}>${action}</button>`}
    </div>`;

/** A choice of one; `options` are [value, words], or false where one is left out. */
export const Select = ({ options, ...rest }) =>
  html`<select ...${rest}>${options.filter(Boolean).map(([value, words = value]) => html`<option key=${value} value=${value}>${words}</option>`)}</select>`;

/** The element that `content` describes, to be put where Preact draws nothing. */
export function elementOf(content) {
  const place = document.createElement("div");
  render(content, place);
  return place.firstElementChild;
}

/** An element with content that is made without Preact: `make(of)` returns its node, anew when `of` changes. */
export class Filled extends Component {
  place = createRef();

  componentDidMount() {
    this.place.current.replaceChildren(this.props.make(this.props.of));
  }

  componentDidUpdate({ of }) {
    if (of !== this.props.of) this.componentDidMount();
  }

  render({ of, make, ...rest }) {
    return html`<div ...${rest} ref=${this.place} />`;
  }
}
