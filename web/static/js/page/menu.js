// A button with a menu, "⋯" for what else can be done.  It opens in the top layer, so nothing moves.
import { Component, createRef, html } from "./html.js";
import { Icon } from "./rows.js";
import { randomId } from "./words.js";

/** `items` are [label, act] pairs, or false where one is left out; `label` names the button. */
export class Menu extends Component {
  id = randomId();
  button = createRef();
  list = createRef();
  toggle = ({ newState }) => this.setState({ open: newState === "open" }, this.place);

  place = () => {
    if (!this.state.open) return;
    const at = this.button.current.getBoundingClientRect();
    const { style, offsetWidth: width, offsetHeight: height } = this.list.current;
    const edge = this.button.current.closest(".panel")?.getBoundingClientRect().left ?? 0;
    style.left = `${Math.max(edge + 8, at.right - width)}px`;
    style.top = `${at.bottom + height < innerHeight ? at.bottom : Math.max(8, at.top - height)}px`;
    this.list.current.querySelector("button").focus();
  };

  choose = (act) => {
    this.list.current.hidePopover(); // the focus returns to the button
    act();
  };

  keys = (event) => {
    event.stopPropagation(); // Escape closes the menu alone
    const all = [...this.list.current.children];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") this.list.current.hidePopover();
    if (to === undefined) return;
    event.preventDefault();
    all.at(to).focus();
  };

  render({ items, label, icon = "more" }, { open }) {
    const about = { "aria-label": label, title: label, "aria-haspopup": "menu", "aria-expanded": String(Boolean(open)) };
    const item = ([words, act]) => html`<button type="button" role="menuitem" tabindex="-1" onClick=${() => this.choose(act)}>${words}</button>`;
    return html`<span class="menu">
        <button type="button" class="icon" popovertarget=${this.id} ref=${this.button} ...${about}><${Icon} name=${icon} /></button>
        <div popover id=${this.id} role="menu" aria-label=${label} ref=${this.list}
          onToggle=${this.toggle} onKeyDown=${this.keys}>${open && items.filter(Boolean).map(item)}</div>
      </span>`;
  }
}
