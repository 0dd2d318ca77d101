// The box for writing messages.  Guarantee: typed text is never lost.  A draft survives a reload and a change of chat,
// and is deleted only when the server has stored the message.
import * as api from "../page/api.js";
import { PHONE, byId, isEnter } from "../page/dom.js";
import { shown } from "../page/state.js";
import { attach, attached } from "./attachments.js";
import { text, tooLong } from "../page/words.js";

const CHARS_MAX = 100_000; // the server's limit for a message
const box = byId("message-box");
const stop = byId("stop");
const send = byId("send");
const memory = byId("memory-switch");
const picker = byId("attach-file");
const trouble = byId("composer-error");
let hint = ""; // said below the box while the memory is on
let place = null; // the name of the draft in the box; null until the page has opened a chat

const slot = (name) => `recap.draft.${name}`; // in sessionStorage, so a draft ends with its tab

box.addEventListener("input", () => {
  fit();
  complain(tooMuch(box.value));
  if (place !== null) sessionStorage.setItem(slot(place), box.value);
});
box.addEventListener("keydown", (event) => {
  if (isEnter(event) && !PHONE) {
    event.preventDefault();
    byId("composer").requestSubmit();
  }
});

/** Show whether the memory is on: for the person, in Settings, and in the chat on display. */
export function showMemory() {
  const state = !shown.remembersPerson ? "nowhere" : shown.remember ? "on" : "off";
  memory.textContent = text(`chat.composer.memory.${state}`);
  memory.title = text(`chat.composer.memory_means.${state}`);
  memory.disabled = state === "nowhere";
  memory.setAttribute("aria-pressed", String(state === "on"));
  byId("composer-hint").textContent = state === "on" ? hint : memory.title;
}

/** Read whether the person has turned memory off everywhere; something has to be stored of them. */
export async function readMemorySwitch() {
  const user = await api.find(api.personPath());
  shown.remembersPerson = user?.remember ?? true;
  showMemory();
}

/** Show a sentence about this chat below the box. */
export function say(words) {
  hint = words;
  showMemory();
}

/** Call `onSubmit(text)` to send a message, `onHalt()` to stop the reply, and `onMemory()` to turn memory on or off. */
export function startComposer(onSubmit, onHalt, onMemory) {
  memory.addEventListener("click", onMemory);
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    const words = typed(box.value);
    if ((words || attached().length) && !send.hidden && !tooMuch(words)) onSubmit(words);
  });
  byId("attach").addEventListener("click", () => picker.click());
  picker.addEventListener("change", async () => {
    await attach(picker.files);
    picker.value = ""; // so that the same file can be chosen again
    box.focus();
  });
  box.addEventListener("paste", (event) => {
    const { files } = event.clipboardData;
    if (!files.length) return;
    event.preventDefault();
    attach(files);
  });
  stop.addEventListener("click", onHalt);
}

/** Show the draft of a session.  The first opened session takes over text that was typed before. */
export function openDraft(name) {
  const draft = draftOf(name) ?? "";
  const typed = place === null ? box.value : "";
  place = name;
  box.value = [draft, typed].filter(Boolean).join("\n");
  if (typed) sessionStorage.setItem(slot(place), box.value);
  complain(tooMuch(box.value));
  showMemory();
  fit();
}

/** Empty the box, and keep the sent text as the draft of the session `name` until `stored(name)` is called. */
export function sending(name, words) {
  sessionStorage.removeItem(slot(place));
  sessionStorage.setItem(slot(name), words);
  place = name;
  box.value = "";
  fit();
}

export const draftOf = (name) => sessionStorage.getItem(slot(name));

export function stored(name, text) {
  if (draftOf(name) === text) sessionStorage.removeItem(slot(name));
}

/** Put back a text that could not be sent, unless the person has typed another one. */
export function giveBack(name, text) {
  if (name === place && !box.value) box.value = text;
  sessionStorage.setItem(slot(name), name === place ? box.value : text);
  fit();
}

export const holds = (words) => typed(box.value) === words;

/** What was typed, without empty lines around it.  Its first line keeps its indentation. */
export const typed = (words) => words.replace(/^\s*\n|\s+$/g, "");
export const tooMuch = (text) => tooLong(text, CHARS_MAX);

/** Show an error above the box; an empty text removes it. */
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
