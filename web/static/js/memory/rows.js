// Rows with buttons.  All rows are one tab stop: the arrow keys move between them, single keys act on the row with
// focus, and Tab leads to its buttons.  The focus of a row that is gone goes to its neighbour.

import { arrowKeys } from "../page/dom.js";
import { Component, createRef, html } from "../page/html.js";
import { Icon } from "../page/icons.js";
import { text } from "../page/texts.js";
import { shortened } from "../page/words.js";

/** An element around all rows.  A row that shows a form is always reached by Tab. */
export class Rows extends Component {
  place = createRef();
  rows = () => [...this.place.current.querySelectorAll("[data-row]:not([hidden], [hidden] *)")];
  rowOf = (element) => this.rows().find((row) => row.contains(element));

  componentDidMount() {
    this.settleArrows = arrowKeys(this.place.current, this.rows);
    this.settle();
  }

  getSnapshotBeforeUpdate() {
    const row = this.rowOf(document.activeElement);
    return row && { row, at: this.rows().indexOf(row) };
  }

  componentDidUpdate(props, state, focused) {
    const rows = this.rows();
    if (focused && !this.rowOf(document.activeElement) && document.activeElement === document.body) {
      const row = rows.includes(focused.row) ? focused.row : rows[Math.min(focused.at, rows.length - 1)];
      (row ?? this.place.current.closest("section")?.querySelector("button"))?.focus({ preventScroll: true });
    }
    this.settleArrows();
    this.settle();
  }

  settle = () => {
    const rows = this.rows();
    const current = this.rowOf(document.activeElement) ?? rows.find((row) => row.tabIndex === 0) ?? rows[0];
    for (const row of rows) {
      row.tabIndex = row === current ? 0 : -1;
      const reached = row === current || row.querySelector("form");
      const controls = row.querySelectorAll("button, input, select, textarea");
      for (const control of controls) control.tabIndex = reached ? 0 : -1;
    }
  };

  render({ children, ...rest }) {
    return html`<div ...${rest} ref=${this.place} onFocusIn=${this.settle}>${children}</div>`;
  }
}

/** `keys` maps keys to what they do: {e: edit, Delete: forget}.  E leads into a form that is open already. */
export function Row({ keys, place, children, ...rest }) {
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!keys[key]) return;
    event.preventDefault();
    const field = key === "e" && event.target.querySelector("textarea");
    if (field) field.focus();
    else keys[key]();
  };
  return html`<li data-row tabindex="-1" ...${rest} ref=${place} onKeyDown=${press}>${children}</li>`;
}

/** A button of a row: "edit", "forget" or "pin".  `of`: the text of the row, for people who hear only the button. */
export function RowButton({ name, of, ...rest }) {
  const label = text(`memory.row_${name}`, { row: shortened(of) });
  return html`
    <button class="icon fact-${name}" title=${label} aria-label=${label} ...${rest}><${Icon} name=${name} /></button>
  `;
}
