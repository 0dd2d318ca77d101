// The box a message is written in.  Guarantee: nothing typed is lost: a draft outlives a reload and a change of chat,
// and leaves the box only when the server has stored it.

import { byId } from "../page/dom.js";

const box = byId("message-box");
const stop = byId("stop");
const send = byId("send");
const trouble = byId("composer-error");
let place = null; // whose draft is in the box: nobody's until the page knows whom it is for
let submit = null; // what is done with a message
let early = null; // what was sent before that was known: it goes out when it is

const slot = (name) => `recap.draft.${name}`; // in sessionStorage: a draft is gone with its tab

box.addEventListener("input", () => {
  fit();
  if (place !== null) sessionStorage.setItem(slot(place), box.value);
});
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    byId("composer").requestSubmit();
  }
});
byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = box.value.trim();
  if (!text || send.hidden) return;
  if (submit) submit(text);
  else early = text;
});

/** `onSubmit(text)` is called with what is to be sent, `onHalt()` when the reply is to stop. */
export function startComposer(onSubmit, onHalt) {
  submit = onSubmit;
  stop.addEventListener("click", onHalt);
  if (early !== null && holds(early)) submit(early);
}

/** Show the draft of a session; the first that is opened takes in what was typed before. */
export function openDraft(name) {
  const draft = sessionStorage.getItem(slot(name)) ?? "";
  const typed = place === null ? box.value : "";
  place = name;
  box.value = [draft, typed].filter(Boolean).join("\n");
  if (typed) sessionStorage.setItem(slot(place), box.value);
  complain("");
  fit();
}

/** The words in the box have gone to a session called `name`: they are its draft until `stored(name)`. */
export function sending(name, text) {
  sessionStorage.removeItem(slot(place));
  sessionStorage.setItem(slot(name), text);
  place = name;
  box.value = "";
  fit();
}

export function stored(name, text) {
  if (sessionStorage.getItem(slot(name)) === text) sessionStorage.removeItem(slot(name));
}

/** Put words that could not be sent back, unless others have been typed meanwhile. */
export function giveBack(name, text) {
  if (name === place && !box.value) box.value = text;
  sessionStorage.setItem(slot(name), name === place ? box.value : text);
  fit();
}

export const holds = (text) => box.value.trim() === text;

/** Say in the box's own place what went wrong; an empty text takes it away. */
export function complain(text) {
  trouble.textContent = text;
  trouble.hidden = !text;
}

export function replying(turn) {
  send.hidden = Boolean(turn);
  stop.hidden = !turn;
  stop.disabled = Boolean(turn?.stopping);
}

export function write(text) {
  box.value = text;
  box.dispatchEvent(new Event("input"));
  box.focus();
}

export const focusComposer = () => box.focus();

function fit() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}
