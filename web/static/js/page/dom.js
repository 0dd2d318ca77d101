// Creates elements.  Strings become text nodes; only safe_html.js creates elements from HTML.

import { text } from "./texts.js";

/**
 * `el("button.primary", {type: "button", onclick}, "Save")` creates an element with classes, properties and children.
 * Names with a dash, `role` and `for` are set as attributes, all others as properties.
 * Children are nodes, strings or arrays of them; null, false and undefined are ignored.
 */
export function el(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.includes("-") || key === "role" || key === "for") element.setAttribute(key, value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else element[key] = value;
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function button(label, onclick, properties = {}) {
  const { kind = "", ...rest } = properties;
  return el(`button${kind && `.${kind.replaceAll(" ", ".")}`}`, { type: "button", onclick, ...rest }, label);
}

/** A button that copies `words`. */
export function copyButton(words) {
  const label = text("page.copy");
  return button(label, async ({ currentTarget: pressed }) => {
    try {
      await navigator.clipboard.writeText(words);
      pressed.textContent = text("page.copied");
      announce(text("page.copied"));
    } catch {
      pressed.textContent = text("page.copy_blocked");
    }
    setTimeout(() => (pressed.textContent = label), 1500);
  }, { kind: "quiet" });
}

/** Have the browser save a file. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // the browser may read the blob later
}

/** Whether a key press is Enter.  Enter that ends the composition of a word by an input method is not. */
export const isEnter = ({ key, shiftKey, isComposing, keyCode }) =>
  key === "Enter" && !shiftKey && !isComposing && keyCode !== 229;

/** Whether a key press sends a message.  Phones have no Shift+Enter, so there Enter begins a new line. */
export const sends = (event) => isEnter(event) && matchMedia("(pointer: fine)").matches;

export const byId = (id) => document.getElementById(id);

/** Announce `text` to screen readers. */
export function announce(text) {
  byId("announcer").textContent = text;
}

/**
 * Make a list one tab stop.  The arrow keys, Home and End move between `items()`, which are focusable elements, and Tab
 * reaches only the current one.  Call the returned function after the list was redrawn.
 */
export function arrowKeys(list, items) {
  const settle = (current) => {
    const all = items();
    const marked = all.find((item) => item.getAttribute("aria-current") === "true");
    const chosen = all.includes(current) ? current : (marked ?? all[0]);
    for (const item of all) item.tabIndex = item === chosen ? 0 : -1;
  };
  list.addEventListener("focusin", (event) => {
    const item = items().find((one) => one === event.target);
    if (item) settle(item);
  });
  list.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(event.target);
    if (at < 0) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all[Math.max(0, Math.min(all.length - 1, to))].focus();
  });
  settle(null);
  return () => settle(list.contains(document.activeElement) ? document.activeElement : null);
}
