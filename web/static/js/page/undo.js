// What was just done, and a way back for some seconds.
//
// Guarantee: a deed that waits for its undoing is done in the end: when the time is over, when the page is left or
// hidden, or when another person's memory is shown.  If it fails then, that is said, and it can be tried again.

import { button, el } from "./dom.js";
import { on } from "./state.js";

const TIME = 8000; // milliseconds to take something back
const TICK = 250;

const tray = el("div.undo-tray", { role: "region", "aria-label": "Just done", "aria-live": "polite" });
const offers = []; // newest last
let ticking = null; // while there are offers

/**
 * Say `text` with an Undo button.  `undo()` runs when it is taken; `settle({leaving})`, where there is one, is the deed
 * itself, put off until nobody can take it back.  `from`, an element, says which dialog the offer has to show in.
 */
export function offerUndo(text, { undo, settle = null, from = document.body }) {
  listen();
  place(from.closest("dialog"));
  const offer = {
    left: TIME,
    waits: settle !== null,
    async take() {
      if (!close(offer)) return;
      await attempt(undo);
    },
    async end(options = {}) {
      if (!close(offer)) return;
      if (settle) await attempt(() => settle(options));
    },
  };
  const note = el(
    "div.undo",
    {},
    el("span.grow", {}, text),
    button("Undo", () => offer.take(), { title: "Ctrl+Z" }),
  );
  offers.push(offer);
  tray.append(note);
  ticking ??= setInterval(tick, TICK);

  function close() {
    const at = offers.indexOf(offer);
    if (at < 0) return false;
    offers.splice(at, 1);
    note.remove();
    return true;
  }

  async function attempt(deed) {
    try {
      await deed();
    } catch (error) {
      complain(error.message, () => attempt(deed));
    }
  }
}

/** Take back the newest; false when there is nothing to take back. */
function undoNewest() {
  const newest = offers.at(-1);
  newest?.take();
  return newest !== undefined;
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

/** Do at once all that waits for its undoing. */
export const endAll = () => [...offers].map((offer) => offer.end());

/** The page may not come back: what waits is done now.  What is done already can still be undone. */
function leave() {
  for (const offer of [...offers]) if (offer.waits) offer.end({ leaving: true });
}

/** In the dialog it was done in, since nothing outside of a modal dialog can be reached; else at the page's end. */
function place(dialog) {
  const host = dialog ?? document.body;
  if (tray.parentNode === host) return;
  host.append(tray);
  dialog?.addEventListener("close", () => document.body.append(tray), { once: true });
}

let listening = false;

function listen() {
  if (listening) return;
  listening = true;
  on("person", () => endAll());
  window.addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => document.hidden && leave());
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest?.("input:not([type=checkbox]), textarea");
    if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || writing) return;
    if (undoNewest()) event.preventDefault();
  });
}

function tick() {
  if (!offers.length) ticking = clearInterval(ticking) ?? null;
  if (tray.matches(":hover, :focus-within")) return; // someone is about to take it
  for (const offer of [...offers]) {
    offer.left -= TICK;
    if (offer.left <= 0) offer.end();
  }
}
