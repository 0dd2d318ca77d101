// Turns in progress, from sending the message to the stored reply.
//
// Guarantee: a turn continues while another session is shown, and each session has at most one.  If the same text is
// sent again after a failure, it has the same idempotency key, so the server never stores it twice.  A turn whose
// connection broke off goes on until the server can be asked what became of it; the words read so far survive a reload.
import * as api from "../page/api.js";
import { contentOf } from "./attachments.js";
import { chosenModel } from "./model.js";
import { emit, shown, space, stored, timezone, usesOwn } from "../page/state.js";
import { randomId } from "../page/words.js";

const HISTORY = 200; // messages of a temporary chat sent with each turn: the API's maximum
const POLL = 700; // milliseconds between looks at a reply that this page does not hear
const live = new Map(); // by session, or temporary chat
const failed = new Map(); // by the same: the last failed turn, until it succeeds

/** The turn in progress in a session, or undefined; without one, in the temporary chat on display. */
export const liveTurn = (sessionId) => live.get(sessionId ?? shown.temporary);

const slot = (sessionId) => `recap.reply.${sessionId}`; // in sessionStorage, so it ends with the tab

/**
 * What is known of the reply to a stored message: what this tab has read of it, or if that is more what the server
 * has kept, `soFar`.  The server keeps it every few seconds.
 */
export function heardOf(sessionId, messageId, soFar) {
  const part = JSON.parse(sessionStorage.getItem(slot(sessionId)) ?? "{}");
  const read = (part.of === messageId && part.text) || "";
  return soFar?.length > read.length ? soFar : read;
}

export const forgetPart = (sessionId) => sessionStorage.removeItem(slot(sessionId));

class Turn {
  sessionId; text; files; replaces; resumes; history; remember; fresh; // as they were asked for
  reply = "";
  thought = null; // what the model thought before it answered: {words, since, seconds}; never stored
  heard = true; // false: the reply is written without this page hearing it
  lost = false; // whether the server can't be reached
  told = {}; // what the API has told of the turn so far, by its names
  error = null; // an ApiError, once it has failed
  stopping = false;
  changed = () => {}; // called after each piece and at the end; set by the display
  #abort = new AbortController();

  /** `resumes`: the id of the stored message to answer; `replaces`: the id of the message to replace. */
  constructor({ sessionId, text, files = [], replaces = null, resumes = null, history = null, remember = true, fresh = false }) {
    Object.assign(this, { sessionId, text, files, replaces, resumes, history, remember, fresh });
    this.place = sessionId ?? shown.temporary;
    this.startedAt = new Date().toISOString();
    this.asked = chosenModel();
    const before = failed.get(this.place);
    const same = before?.files.length === files.length && before.files.every((file, at) => file === files[at]);
    const again = same && before.text === text && before.replaces === replaces;
    this.key = again ? before.key : randomId();
  }

  get temporary() {
    return this.sessionId === null;
  }

  async take(act) {
    live.set(this.place, this);
    try {
      await act();
      failed.delete(this.place);
    } catch (error) {
      if (error.name === "AbortError") this.told.finish_reason = "interrupted";
      else {
        this.error = error;
        failed.set(this.place, this);
      }
    }
    live.delete(this.place);
    this.changed();
    emit("turn", { sessionId: this.sessionId, turn: this });
  }

  async send() {
    await this.#prepare();
    try {
      await api.chat(this.#body(), { key: this.key, signal: this.#abort.signal, heard: (chunk) => this.#hear(chunk) });
    } catch (error) {
      if (this.told.finish_reason === "cut_off") return; // the words so far are stored, and say so
      if (error.code !== "stream_broken" || this.temporary) throw error;
      this.lost = true;
      await this.follow();
    }
  }

  /** Wait until the server has no reply in progress, however long it can't be reached. */
  async follow() {
    this.heard = false;
    for (let busy = true; busy; ) {
      this.changed();
      await new Promise((resolve) => setTimeout(resolve, POLL));
      try {
        const { items } = await api.get(`${api.sessionPath(this.sessionId)}/turns`, { limit: 1 });
        busy = items[0]?.state === "answering";
        if (busy && items[0].so_far?.length > this.reply.length) this.reply = items[0].so_far;
        this.lost = false;
      } catch (error) {
        if (error.status === 404) return; // erased meanwhile
        this.lost = true;
      }
    }
  }

  /** Stop the reply.  The text so far is kept. */
  async stop() {
    if (this.stopping) return;
    this.stopping = true;
    this.changed();
    if (this.temporary) return this.#abort.abort();
    for (let left = 10; live.get(this.sessionId) === this && left; left--) {
      try {
        const { stopping } = await api.post(`${api.sessionPath(this.sessionId)}/stop`);
        if (stopping) return;
      } catch (error) {
        if (error.status !== 404) break; // 404: the first message is not stored yet
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    this.stopping = false;
    this.changed();
  }

  async #prepare() {
    if (!this.fresh || shown.sessionId !== this.sessionId || this.temporary) return;
    if (!shown.systemPrompt && this.remember) return;
    const body = { session_id: this.sessionId, system_prompt: shown.systemPrompt || undefined, remember: this.remember };
    await api.post("/api/sessions", body).catch((error) => {
      if (error.status !== 409) throw error; // an earlier attempt created the session
    });
    shown.systemPrompt = "";
  }

  #body() {
    return {
      message: contentOf(this.text, this.files),
      timezone: timezone(),
      ...(this.temporary ? { temporary: true, history: this.history.slice(-HISTORY) } : { session_id: this.sessionId }),
      system_prompt: (this.temporary && shown.systemPrompt) || undefined,
      model: this.asked || undefined,
      remember: this.temporary ? this.remember : undefined, // else the session says it
      recall: stored("recall") || undefined,
      person: space() ? usesOwn() : undefined,
      prompt: stored("prompt") || undefined,
      replaces: this.replaces ?? undefined,
    };
  }

  #hear({ memory, model, usage, message_id, user_message_id, choices, withdraws }) {
    const [{ delta, finish_reason } = {}] = choices ?? [];
    const begins = user_message_id && !this.told.user_message_id;
    const told = Object.entries({ memory, model, usage, message_id, user_message_id, finish_reason });
    Object.assign(this.told, Object.fromEntries(told.filter(([, value]) => value)));
    if (begins) emit("begun", { sessionId: this.sessionId });
    this.#think(delta?.reasoning_content, withdraws);
    this.reply += delta?.content ?? "";
    const part = { of: this.told.user_message_id, text: this.reply };
    if (!this.temporary) sessionStorage.setItem(slot(this.sessionId), JSON.stringify(part));
    this.changed();
  }

  /** Take in thoughts; with `withdraws`, the reply so far was one of them. */
  #think(words, withdraws) {
    if (words === undefined) return;
    this.thought ??= { words: "", since: Date.now(), seconds: 0 };
    this.thought.words += withdraws ? this.reply + words : words;
    this.thought.seconds = Math.max(1, Math.round((Date.now() - this.thought.since) / 1000));
    if (withdraws) this.reply = "";
  }
}

/** Begin a turn.  It emits the event "turn" when it ends. */
export function takeTurn(request) {
  const turn = new Turn(request);
  turn.take(() => turn.send());
  return turn;
}

/** Begin to wait for the reply to a stored message that the server writes for another page; `part` is known of it. */
export function followTurn(sessionId, message, part) {
  const turn = new Turn({ sessionId, text: message?.content ?? "", resumes: message?.id ?? true });
  turn.reply = part;
  turn.take(() => turn.follow());
  return turn;
}
