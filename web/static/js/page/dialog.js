// Modal dialogs.  Escape closes them, and focus returns to where it was.

import { button, el } from "./dom.js";
import { text } from "./texts.js";

let count = 0;

/**
 * Open a modal dialog with a heading and the nodes that `fill(close)` returns.  Resolves to the argument of
 * `close(value)`, or to undefined if the dialog was dismissed.  With `locked` there is no Escape and no ✕.
 */
export function openDialog(title, fill, { wide = false, locked = false } = {}) {
  const before = document.activeElement;
  const id = `dialog-${++count}`;
  return new Promise((resolve) => {
    let value;
    const dialog = el(`dialog.dialog${wide ? ".wide" : ""}`, { "aria-labelledby": id });
    const close = (result) => {
      value = result;
      dialog.close();
    };
    dialog.addEventListener("cancel", (event) => {
      if (locked) event.preventDefault();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before?.isConnected) before.focus();
      resolve(value);
    });
    dialog.append(
      el("header.dialog-head", {}, el("h2", { id }, title), !locked && button("✕", () => close(), { kind: "icon", "aria-label": text("page.close_named", { name: title }) })),
      el("div.dialog-body", {}, fill(close)),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Ask for confirmation.  With `typed`, the person must type that text.  Resolves to true or false. */
export async function confirmed(title, question, action, { typed = "" } = {}) {
  const answer = await openDialog(title, (close) => {
    const go = button(action, () => close(true), { kind: "danger", disabled: typed !== "" });
    const box = typed
      ? el("label.field", {}, text("page.type_to_confirm", { word: typed }), el("input", {
          type: "text",
          autocomplete: "off",
          autofocus: true,
          oninput: (event) => (go.disabled = event.target.value.trim() !== typed),
        }))
      : null;
    return [el("p", {}, question), box, el("div.row.end", {}, button(text("page.cancel"), () => close(false)), go)];
  });
  return answer === true;
}
