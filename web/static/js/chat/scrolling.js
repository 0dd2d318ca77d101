// The view of the messages.  It stays at the end while text arrives, unless the person reads further up.
import { byId } from "../page/dom.js";

const NEAR_END = 80; // pixels from the end within which the view follows new text

const list = byId("messages");
let following = true; // whether the view stays at the end
let lastRoom = 0; // how far the view could be scrolled when this was last looked at

export function startScrolling() {
  list.addEventListener("scroll", scrolled);
  new ResizeObserver(keepEnd).observe(list);
}

export const follow = (end) => (following = end);

/** Show the newest message if the view stays at the end, and whether it does.  What greets a new chat is read from its beginning. */
export function keepEnd() {
  if (following) {
    lastRoom = list.scrollHeight - list.clientHeight;
    list.scrollTop = list.querySelector(".empty") ? 0 : lastRoom;
  }
  return following;
}

/** Draw the messages.  Further up, the view stays on what it shows when earlier messages appear above. */
export function keepPlace(draw) {
  const { scrollHeight: height, scrollTop: top } = list;
  const first = list.querySelector("article");
  draw();
  const moved = first?.isConnected && list.querySelector("article") !== first;
  if (!keepEnd() && moved) list.scrollTop = top + list.scrollHeight - height;
}

/** Show an element, and stay there when text arrives below it. */
export function bringIntoView(element, block = "nearest") {
  following = false;
  element.scrollIntoView({ block });
}

/** Follow new text while its end is in view.  When the room has changed, the browser scrolled and not the person. */
function scrolled() {
  const room = list.scrollHeight - list.clientHeight;
  if (room - list.scrollTop < NEAR_END) following = true;
  else if (room === lastRoom) following = false;
  lastRoom = room;
}
