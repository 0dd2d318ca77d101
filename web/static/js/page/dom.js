// Elements: the one way this page makes them.  Text is always text; HTML comes only from markdown.js.

/**
 * `el("button.primary", {type: "button", onclick}, "Save")`: an element with classes, properties, and children.
 * Properties are set as properties; names with a dash, and `role`, `for`, `colspan`, as attributes.
 * Children are nodes, strings, arrays of them, or null, false and undefined, which are left out.
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

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** The children of `parent` become `nodes`; those that stay are not moved, so that focus and a press on them last. */
export function put(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
}

export const byId = (id) => document.getElementById(id);

/** Tell people who listen instead of look. */
export function announce(text) {
  byId("announcer").textContent = text;
}

/**
 * One tab stop for a list: the arrow keys, Home and End move between `items()`, and only the current one takes part
 * in Tab.  An item is an element that can be focused; call the returned function when the list was drawn again.
 */
export function arrowKeys(list, items) {
  const settle = (current) => {
    const all = items();
    const chosen = all.includes(current) ? current : (all.find((item) => item.getAttribute("aria-current") === "true") ?? all[0]);
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
