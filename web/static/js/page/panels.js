// Panels that slide in when the screen has no room for all three, and the keys that move between panels.
// Guarantee: at most one sliding panel is open.  Focus moves into it and returns afterwards, and Escape closes it.
import { byId } from "./dom.js";

const PANELS = ["sessions", "conversation", "memory"];
const openerOf = (name) => document.querySelector(`[data-open-panel="${name}"]`);
let opened = null; // the name of the open panel

export function startPanels() {
  document.addEventListener("click", ({ target }) => {
    const opener = target.closest("[data-open-panel]");
    if (opener) open(opener.dataset.openPanel);
    else if (target.closest("[data-close-panel]")) closePanel();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && opened && !document.querySelector("dialog[open]")) {
      event.preventDefault(); // it stops no reply
      closePanel();
    }
    if (event.key === "F6") {
      event.preventDefault();
      next(event.shiftKey ? -1 : 1);
    }
  });
  for (const width of [760, 1180]) matchMedia(`(max-width: ${width}px)`).addEventListener("change", closePanel);
}

function open(name) {
  closePanel();
  opened = name;
  slide(true);
  byId(name).focus();
}

/** Slide a panel in where it does not show. */
export const showPanel = (name) => byId(name).checkVisibility() || open(name);

/** Close the open panel, if there is one, and show the conversation. */
export function closePanel() {
  if (!opened) return;
  slide(false);
  const within = byId(opened).contains(document.activeElement) || document.activeElement === document.body;
  if (within) openerOf(opened).focus();
  opened = null;
}

function slide(shows) {
  byId(opened).classList.toggle("open", shows);
  openerOf(opened).setAttribute("aria-expanded", String(shows));
  byId("scrim").hidden = !shows;
  for (const other of PANELS) byId(other).inert = shows && other !== opened;
}

/** Handle F6: focus the next panel, and slide it in if it is hidden. */
function next(step) {
  const at = PANELS.findIndex((name) => byId(name).contains(document.activeElement));
  const name = PANELS[(Math.max(at, 0) + step + PANELS.length) % PANELS.length];
  closePanel();
  showPanel(name);
  byId(name).focus();
}
