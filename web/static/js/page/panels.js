// Panels that slide in when the screen has no room for all three, and the keys that move between panels.
// Guarantee: at most one sliding panel is open.  Focus moves into it and returns afterwards, and Escape closes it.

import { button, byId } from "./dom.js";
import { text } from "./texts.js";

const PANELS = ["sessions", "conversation", "memory"];
let opened = null; // {panel, from}: the open panel, and the button that opened it

export function startPanels() {
  for (const opener of document.querySelectorAll("[data-open-panel]")) {
    opener.addEventListener("click", () => open(opener.dataset.openPanel, opener));
  }
  for (const closer of document.querySelectorAll("[data-close-panel]")) closer.addEventListener("click", close);
  document.addEventListener("show-conversation", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && opened && !document.querySelector("dialog[open]")) close();
    if (event.key === "F6") {
      event.preventDefault();
      next(event.shiftKey ? -1 : 1);
    }
  });
  byId("session-list").addEventListener("click", (event) => {
    if (event.target.closest(".session-open")) close();
  });
  for (const id of ["new-chat", "temporary-chat"]) byId(id).addEventListener("click", close);
  for (const width of [760, 1180]) matchMedia(`(max-width: ${width}px)`).addEventListener("change", close);
}

function open(name, from) {
  close();
  const panel = byId(name);
  panel.classList.add("open");
  from?.setAttribute("aria-expanded", "true");
  const label = text("page.close_panel");
  byId("panels").append(button("", close, { kind: "scrim", id: "scrim", tabIndex: -1, "aria-label": label }));
  for (const other of PANELS) if (other !== name) byId(other).inert = true;
  opened = { panel, from };
  panel.focus();
}

function close() {
  if (!opened) return;
  const { panel, from } = opened;
  opened = null;
  panel.classList.remove("open");
  from?.setAttribute("aria-expanded", "false");
  byId("scrim")?.remove();
  for (const other of PANELS) byId(other).inert = false;
  if (panel.contains(document.activeElement) || document.activeElement === document.body) from?.focus();
}

/** Handle F6: focus the next panel, and slide it in if it is hidden. */
function next(step) {
  const at = PANELS.findIndex((name) => byId(name).contains(document.activeElement));
  const name = PANELS[(Math.max(at, 0) + step + PANELS.length) % PANELS.length];
  const panel = byId(name);
  close();
  if (panel.checkVisibility()) panel.focus();
  else open(name, document.querySelector(`[data-open-panel="${name}"]`));
}
