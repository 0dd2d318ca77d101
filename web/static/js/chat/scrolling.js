// The view of the messages.  It stays at the end while text arrives, unless the person reads further up.
import { Component, createRef, html } from "../page/html.js";

const NEAR_END = 80; // pixels from the end within which the view follows new text

let view = null; // the element that scrolls
let following = true; // whether the view stays at the end
let lastRoom = 0; // how far the view could be scrolled when this was last looked at

/** What it shows stays in place when earlier messages appear above. */
export class Scroll extends Component {
  place = createRef();

  componentDidMount() {
    view = this.place.current;
    new ResizeObserver(keepEnd).observe(view);
  }

  getSnapshotBeforeUpdate() {
    return { height: view.scrollHeight, top: view.scrollTop, first: view.querySelector("article") };
  }

  componentDidUpdate(props, state, { height, top, first }) {
    const moved = first?.isConnected && view.querySelector("article") !== first;
    if (!keepEnd() && moved) view.scrollTop = top + view.scrollHeight - height;
  }

  render({ children, ...rest }) {
    return html`<div ...${rest} ref=${this.place} onScroll=${scrolled}>${children}</div>`;
  }
}

export const follow = (end) => (following = end);

/** Show the newest message if the view stays at the end, and whether it does.  What greets a new chat is read from its beginning. */
export function keepEnd() {
  if (following) {
    lastRoom = view.scrollHeight - view.clientHeight;
    view.scrollTop = view.querySelector(".empty") ? 0 : lastRoom;
  }
  return following;
}

/** Show an element, and stay there when text arrives below it. */
export function bringIntoView(element, block = "nearest") {
  following = false;
  element.scrollIntoView({ block });
}

/** Follow new text while its end is in view.  When the room has changed, the browser scrolled and not the person. */
function scrolled() {
  const room = view.scrollHeight - view.clientHeight;
  if (room - view.scrollTop < NEAR_END) following = true;
  else if (room === lastRoom) following = false;
  lastRoom = room;
}
