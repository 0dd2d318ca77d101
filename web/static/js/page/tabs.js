// Tabs: one part of several is shown.  The arrow keys move between them, Home and End to the first and last.
import { html } from "./html.js";

/** `names` are [name, title, badge?] of the tabs; `children(name)` is what one shows; those not chosen stay, hidden. */
export function Tabs({ label, names, chosen, choose, children, ...rest }) {
  const keys = (event) => {
    const at = names.findIndex(([name]) => name === chosen);
    const to = { ArrowRight: (at + 1) % names.length, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(names.at(to)[0]);
    [...event.currentTarget.children].at(to).focus();
  };
  const tab = ([name, title, badge]) => html`<button type="button" role="tab" data-tab=${name} aria-selected=${String(name === chosen)}
      tabindex=${name === chosen ? 0 : -1} onClick=${() => choose(name)}>
      ${title} ${badge && html`<span class="muted">${badge}</span>`}
    </button>`;
  const panel = ([name, title]) =>
    html`<div key=${name} role="tabpanel" aria-label=${title} class="tab-panel" hidden=${name !== chosen} ...${rest}>${children(name)}</div>`;
  return [html`<div key="" class="tabs" role="tablist" aria-label=${label} onKeyDown=${keys}>${names.map(tab)}</div>`, ...names.map(panel)];
}
