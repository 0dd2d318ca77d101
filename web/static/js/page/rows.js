// Keyboard access to rows with buttons.  All rows are one tab stop; arrow keys move between them, single keys act on
// the current row, and Tab leads to its buttons.

import { arrowKeys } from "./dom.js";

/**
 * `rows()` returns the current rows, which are focusable elements.  `keys` maps keys to actions on the focused row:
 * {e: (row) => …, Delete: …}.  `open(row)` says whether the row shows a form, whose fields Tab always reaches.
 * Call the returned function after the rows were redrawn.
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
