// Rows of lists.  All rows are one tab stop: the arrow keys, Home and End move between them, single keys act on the row
// with focus, and Tab leads to its buttons.  The focus of a row that is gone goes to its neighbour.
import { Component, Trouble, createRef, html } from "./html.js";
import { holder } from "./state.js";
import { randomId, shortened, text } from "./words.js";

/**
 * An element around lists whose items are, or contain, an element with `data-row`: the row. A row that is drawn again elsewhere is known by the
 * value of `data-row`. A row that shows a form is always reached by Tab. `hint` tells the keys that act on rows.
 */
export class Rows extends Component {
  place = createRef();
  id = randomId();
  rows = () => [...this.place.current.querySelectorAll("[data-row]:not([hidden], [hidden] *)")];
  rowOf = (element) => this.rows().find((row) => row.closest("li").contains(element));

  componentDidMount() {
    this.settle();
  }

  getSnapshotBeforeUpdate() {
    const row = this.rowOf(document.activeElement);
    return row && { row, at: this.rows().indexOf(row) };
  }

  componentDidUpdate(props, state, focused) {
    const rows = this.rows();
    if (focused && document.activeElement === document.body) {
      const { row, at } = focused;
      const again = rows.find((one) => one === row || (row.dataset.row && one.dataset.row === row.dataset.row));
      const next = again ?? rows[Math.min(at, rows.length - 1)];
      (next ?? this.place.current.closest("section")?.querySelector("button"))?.focus({ preventScroll: true });
    }
    this.settle();
  }

  /** Let Tab reach the current row: the one with focus, the chosen one, or the one that was it before. */
  settle = () => {
    const rows = this.rows();
    const chosen = rows.find((row) => row.getAttribute("aria-current") === "true");
    const current = this.rowOf(document.activeElement) ?? chosen ?? rows.find((row) => row.tabIndex === 0) ?? rows[0];
    for (const row of rows) {
      row.tabIndex = row === current ? 0 : -1;
      if (this.props.hint) row.setAttribute("aria-describedby", this.id);
      const reached = row === current || row.querySelector("form");
      const controls = row.querySelectorAll("button, input, select, textarea");
      for (const control of controls) control.tabIndex = reached ? 0 : -1;
    }
  };

  move = (event) => {
    const rows = this.rows();
    const at = rows.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    rows[Math.max(0, Math.min(rows.length - 1, to))].focus();
  };

  render({ hint, children, ...rest }) {
    return html`<div ...${rest} ref=${this.place} onFocusIn=${this.settle} onKeyDown=${this.move}>
        ${children} ${hint && html`<p class="keys-hint" id=${this.id}>${hint}</p>`}
      </div>`;
  }
}

/** `keys` maps keys to what they do: {e: edit, Delete: forget}.  E leads into a form that is open already. */
export function Row({ keys, place, children, ...rest }) {
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!keys[key] || (key !== "Enter" && !holder.may.change)) return;
    event.preventDefault();
    const field = key === "e" && event.target.querySelector("textarea");
    if (field) field.focus();
    else keys[key]();
  };
  return html`<li data-row tabindex="-1" ...${rest} ref=${place} onKeyDown=${press}>${children}</li>`;
}

/** A row of a list in which one is chosen: a button with a name, and details below it. */
export const Choice = ({ name, badge, details, chosen, ...rest }) => html`<li>
    <button data-row class="choice-row" aria-current=${chosen ? "true" : null} ...${rest}>
      <span class="row"><strong>${name}</strong>${badge && html`<span class="badge">${badge}</span>`}</span>
      <span class="small muted">${details}</span>
    </button>
  </li>`;

/** An icon of page.html.  Screen readers do not tell of it, so its button needs a label. */
export const Icon = ({ name }) => html`<svg class="icon-${name}" aria-hidden="true"><use href="#icon-${name}" /></svg>`;

/** A button of a row: "edit", "forget" or "pin".  `of`: the text of the row, for people who hear only the button. */
export function RowButton({ name, of, ...rest }) {
  const label = text(`memory.row_${name}`, { row: shortened(of) });
  return holder.may.change && html`<button class="icon fact-${name}" title=${label} aria-label=${label} ...${rest}><${Icon} name=${name} /></button>`;
}

/** Where a list ends that is read, or drawn, bit by bit.  Calls `more()` when it comes near the view.  It does so once: give it a key that changes with what is next. */
export class Edge extends Component {
  place = createRef();

  componentDidMount() {
    const near = ([entry]) => entry.isIntersecting && !this.state.busy && this.more();
    this.watch = new IntersectionObserver(near, /** @type {any} */ ({ scrollMargin: "400px" }));
    this.watch.observe(this.place.current);
  }

  more = () => this.attempt(() => this.props.more(), this.more);

  componentWillUnmount() {
    this.watch.disconnect();
  }

  render({ children }, { trouble }) {
    return html`<div class="edge" ref=${this.place}>${children}<${Trouble} ...${trouble} /></div>`;
  }
}
