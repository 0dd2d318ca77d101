// Offers to undo an action for some seconds.  If undoing fails, the page shows the error and offers to try again.

import { button, el } from "./dom.js";
import { on } from "./state.js";

const TIME = 8000; // milliseconds for which an action can be undone
const LONGER = 1000; // while the person may be about to press Undo

const tray = el("div.undo-tray", { role: "region", "aria-label": "Just done", "aria-live": "polite" });

/** Show `text` with an Undo button, which calls `undo()`. */
export function offerUndo(text, undo) {
  if (!tray.isConnected) start();
  const take = async () => {
    note.remove();
    try {
      await undo();
    } catch (error) {
      complain(error.message, take);
    }
  };
  const note = el("div.undo", {}, el("span.grow", {}, text), button("Undo", take, { title: "Ctrl+Z" }));
  const end = () => (tray.matches(":hover, :focus-within") ? setTimeout(end, LONGER) : note.remove());
  tray.append(note);
  setTimeout(end, TIME);
}

function complain(text, again) {
  const note = el("div.undo.error", { role: "alert" }, el("span.grow", {}, text));
  const leave = (deed) => () => {
    note.remove();
    deed?.();
  };
  note.append(button("Try again", leave(again)), button("✕", leave(), { kind: "icon", "aria-label": "Close" }));
  tray.append(note);
}

function start() {
  document.body.append(tray);
  on("person", () => tray.replaceChildren());
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest?.("input:not([type=checkbox]), textarea");
    if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || writing) return;
    const newest = [...tray.querySelectorAll(".undo:not(.error) button")].at(-1);
    if (!newest) return;
    event.preventDefault();
    newest.click();
  });
}
