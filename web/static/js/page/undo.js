// Offers to undo an action for some seconds.
//
// Guarantee: a postponed action is executed when the time is over, when the page is left or hidden, or when another
// person's memory is shown.  If it fails then, the page shows the error and offers to try again.

import { button, el } from "./dom.js";
import { on } from "./state.js";

const TIME = 8000; // milliseconds in which an action can be undone
const TICK = 250;

const tray = el("div.undo-tray", { role: "region", "aria-label": "Just done", "aria-live": "polite" });
const offers = []; // newest last
let ticking = null; // the timer, while there are offers

/**
 * Show `text` with an Undo button, which calls `undo()`.  `settle({leaving})`, if given, executes the postponed action
 * when it can no longer be undone.  The offer appears in the dialog that contains the element `from`.
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

/** Undo the newest action.  Returns false if there is none. */
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

/** Execute all postponed actions now. */
export const endAll = () => [...offers].map((offer) => offer.end());

/** Execute postponed actions, because the page may be closed.  Actions already executed can still be undone. */
function leave() {
  for (const offer of [...offers]) if (offer.waits) offer.end({ leaving: true });
}

/** Move the tray into `dialog`, because nothing outside a modal dialog can be reached; else to the end of the page. */
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
  if (tray.matches(":hover, :focus-within")) return; // the person may be about to press Undo
  for (const offer of [...offers]) {
    offer.left -= TICK;
    if (offer.left <= 0) offer.end();
  }
}
