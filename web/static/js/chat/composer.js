// The box for writing messages.  Guarantee: typed text is never lost.  A draft survives a reload and a change of chat,
// and is deleted only when the server has stored the message.
import * as api from "../page/api.js";
import { PHONE, chooseFiles, isEnter } from "../page/dom.js";
import { Component, createRef, html } from "../page/html.js";
import { Menu } from "../page/menu.js";
import { holder, shown, space, whose } from "../page/state.js";
import { text, tooLong } from "../page/words.js";
import { ACCEPTED, Chosen, FILES_MAX, readFiles } from "./attachments.js";
import { ModelPicker } from "./model.js";
import { liveTurn } from "./turns.js";

const CHARS_MAX = 100_000; // the server's limit for a message
const slot = (name) => `recap.draft.${name}`; // in sessionStorage, so a draft ends with its tab

export const draftOf = (name) => sessionStorage.getItem(slot(name));

export function stored(name, words) {
  if (draftOf(name) === words) sessionStorage.removeItem(slot(name));
}

/** What was typed, without empty lines around it.  Its first line keeps its indentation. */
export const typed = (words) => words.trimEnd().replace(/^\s*\n/, "");
export const tooMuch = (words) => tooLong(words, CHARS_MAX);

/** Read whether the person has turned memory off everywhere; something has to be stored of them. */
export async function readMemorySwitch() {
  const user = await api.find(api.personPath());
  shown.remembersPerson = user?.remember ?? true;
  composer.forceUpdate();
}

/** @type {Composer} */
export let composer; // the page has one

/** `send(text)` sends a message, and `turnMemory()` turns the memory of the chat on display on or off; `ready`: a chat is on display. */
export class Composer extends Component {
  state = { problem: "" };
  box = createRef();
  files = []; // that go along with the next message
  elsewhere = new Map(); // files beside the drafts of other chats, by the drafts' names
  reading = Promise.resolve(); // until these are read
  place = null; // the name of the draft in the box; null until the page has opened a chat

  constructor(props) {
    super(props);
    composer = this;
  }

  focus = () => this.box.current.focus();
  holds = (words) => typed(this.box.current.value) === words;

  /** Show an error above the box; an empty text removes it. */
  complain = (problem) => this.setState({ problem });

  fill(words) {
    const box = this.box.current;
    box.value = words;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
  }

  write = (words) => {
    this.fill(words);
    this.edited();
    this.focus();
  };

  edited = () => {
    const { value } = this.box.current;
    this.fill(value);
    this.complain(tooMuch(value));
    if (this.place !== null) sessionStorage.setItem(slot(this.place), value);
  };

  /** Show the draft of a session.  The first opened session takes over what was typed or attached before. */
  openDraft(name) {
    const typedBefore = this.place === null ? this.box.current.value : "";
    if (this.place !== null && this.place !== name) {
      this.elsewhere.set(this.place, this.files);
      this.files = this.elsewhere.get(name) ?? [];
    }
    this.elsewhere.delete(name);
    this.place = name;
    const draft = draftOf(name) === liveTurn(shown.sessionId)?.text ? "" : draftOf(name); // what is on its way comes back if it fails
    this.fill([draft, typedBefore].filter(Boolean).join("\n"));
    if (typedBefore) this.edited();
    else this.complain(tooMuch(this.box.current.value));
  }

  /** Empty the box, and keep the sent text as the draft of the session `name` until `stored(name)` is called. */
  sending(name, words) {
    sessionStorage.removeItem(slot(this.place));
    sessionStorage.setItem(slot(name), words);
    this.place = name;
    this.files = [];
    this.fill("");
  }

  /** Put back what could not be sent, unless the person has typed something else. */
  giveBack(name, words, files) {
    if (name === this.place && !this.box.current.value) this.fill(words);
    sessionStorage.setItem(slot(name), name === this.place ? this.box.current.value : words);
    this.keepFiles(files);
    this.focus();
  }

  /** Have these go along with the next message of this chat, which waits for them. */
  attach = (list) => {
    const { place } = this;
    const attached = this.reading.then(async () => {
      const read = await readFiles(list);
      if (place === this.place || place === null) this.keepFiles([...this.files, ...read]);
      else this.elsewhere.set(place, [...(this.elsewhere.get(place) ?? []), ...read]);
    });
    this.reading = attached.catch(({ message }) => this.complain(message));
    return this.reading;
  };

  keepFiles = (files) => {
    if (files.length > FILES_MAX) this.complain(text("chat.attach.too_many", { most: FILES_MAX }));
    this.files = files.slice(0, FILES_MAX);
    this.forceUpdate();
  };

  // -- what the person does

  submit = async (event) => {
    event.preventDefault();
    await this.reading;
    const words = typed(this.box.current.value);
    if ((words || this.files.length) && !tooMuch(words)) this.props.send(words);
  };

  keys = (event) => {
    if (!isEnter(event) || PHONE) return;
    event.preventDefault();
    event.currentTarget.form.requestSubmit();
  };

  pick = async () => {
    await this.attach(await chooseFiles(ACCEPTED));
    this.focus();
  };

  learn = async () => {
    const { addDocuments, KINDS } = await import("../memory/documents.js");
    await addDocuments(await chooseFiles(KINDS));
  };

  paste = (event) => {
    const { files, types } = event.clipboardData;
    const hasWords = ["text/plain", "text/html"].every((type) => types.includes(type)); // the file is a picture of them, as office programs add
    if (!files.length || hasWords) return;
    event.preventDefault();
    this.attach(files);
  };

  render({ turnMemory, ready }, { problem }) {
    const turn = liveTurn(shown.sessionId);
    const adds = [[text("page.attach"), this.pick], holder.may.change && [text("page.add_documents"), this.learn]];
    return html`<form class="composer ${shown.temporary ? "temporary" : ""}" id="composer" noValidate onSubmit=${this.submit}>
        <div class="notice error" role="alert" hidden=${!problem}>${problem}</div>
        <${Chosen} files=${this.files} change=${this.keepFiles} />
        <div class="composer-box">
          <${Menu} icon="attach" label=${text("page.add_files")} items=${adds} />
          <textarea id="message-box" rows="1" dir="auto" placeholder=${text("page.message_hint")} aria-label=${text("page.your_message")} autocomplete="off"
            ref=${this.box} onInput=${this.edited} onKeyDown=${this.keys} onPaste=${this.paste} />
          <button type="submit" class="primary" id="send" hidden=${Boolean(turn)}>${text("page.send")}</button>
          <button type="button" hidden=${!turn} disabled=${Boolean(turn?.stopping)} onClick=${() => turn.stop()}>${text("page.stop")}</button>
        </div>
        <div class="composer-foot">${ready && html`<${MemorySwitch} turn=${turnMemory} /><${ModelPicker} />`}</div>
      </form>`;
  }
}

/** Whether the memory is on, for the person, in Settings, and in the chat on display; and what that means for it. */
function MemorySwitch({ turn }) {
  const state = !shown.remembersPerson ? "nowhere" : shown.remember ? "on" : "off";
  const means = text(`chat.composer.memory_means.${state}`);
  const kept = whose() === "me" && !space() ? "" : text("chat.composer.person", { person: whose() });
  const hint = shown.temporary ? text("chat.composer.temporary") : kept;
  return html`<button type="button" class="quiet" title=${means} disabled=${state === "nowhere"} aria-pressed=${String(state === "on")}
      onClick=${turn}>${text(`chat.composer.memory.${state}`)}</button>
    <p class="composer-hint grow">${state === "on" ? hint : means}</p>`;
}
