// Rows with buttons in them, by keyboard: one tab stop for all, the arrow keys between them, single keys for what can
// be done with the current one, and its buttons follow by Tab.

import { arrowKeys } from "./dom.js";

/**
 * `rows()`: the rows there are now, each an element that can be focused.  `keys`: what a key does to the row it is
 * pressed on, as {e: (row) => …, Delete: …}.  `open(row)`: a form stands in it, whose fields take part in Tab anyway.
 * Call the returned function when the rows were drawn again.
 */
export function rowKeys(container, rows, { keys, open = () => false }) {
  const settleArrows = arrowKeys(container, rows);
  const rowOf = (element) => rows().find((row) => row.contains(element));

  function current(chosen) {
    for (const row of rows()) {
      row.tabIndex = row === chosen ? 0 : -1;
      const reached = row === chosen || open(row);
      for (const control of row.querySelectorAll("button, input, select, textarea"))
        control.tabIndex = reached ? 0 : -1;
    }
  }

  container.addEventListener("focusin", (event) => {
    const row = rowOf(event.target);
    if (row) current(row);
  });
  container.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !rows().includes(event.target)) return;
    const deed = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!deed) return;
    event.preventDefault();
    deed(event.target);
  });
  return () => {
    const last = rows().find((row) => row.tabIndex === 0);
    settleArrows();
    current(rowOf(document.activeElement) ?? last ?? rows()[0]);
  };
}
