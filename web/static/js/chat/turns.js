// Turns in progress, from sending the message to the stored reply.
//
// Guarantee: a turn continues while another session is shown, and each session has at most one.  If the same text is
// sent again after a failure, it has the same idempotency key, so the server never stores it twice.

import * as api from "../page/api.js";
import { emit, settings, shown, timezone } from "../page/state.js";
import { randomId } from "../page/words.js";

const TEMPORARY = "(temporary)"; // cannot be a session id, because those contain no parentheses
const HISTORY = 200; // messages of a temporary chat sent with each turn: the API's maximum
const live = new Map(); // by session
const failed = new Map(); // by session: the last failed turn, until it succeeds

/** The turn in progress in a session, or undefined. */
export const liveTurn = (sessionId) => live.get(sessionId ?? TEMPORARY);

class Turn {
  reply = "";
  memory = null;
  usage = null;
  userMessageId = null;
  messageId = null;
  finishReason = null;
  error = null; // an ApiError, once it has failed
  stopping = false;
  changed = () => {}; // called after each piece and at the end; set by the display
  #abort = new AbortController();

  /** `resumes`: the id of the stored message to answer; `replaces`: the id of the message to replace. */
  constructor({ sessionId, text, replaces = null, resumes = null, history = null }) {
    Object.assign(this, { sessionId, text, replaces, resumes, history });
    this.startedAt = new Date().toISOString();
    const before = failed.get(sessionId ?? TEMPORARY);
    const again = before && before.text === text && before.replaces === replaces;
    this.key = again ? before.key : randomId();
  }

  get temporary() {
    return this.sessionId === null;
  }

  async take() {
    const place = this.sessionId ?? TEMPORARY;
    live.set(place, this);
    try {
      await this.#prepare();
      await api.chat(this.#body(), { key: this.key, signal: this.#abort.signal, heard: (chunk) => this.#heard(chunk) });
      failed.delete(place);
    } catch (error) {
      if (error.name === "AbortError") this.finishReason = "interrupted";
      else {
        this.error = error;
        failed.set(place, this);
      }
    }
    live.delete(place);
    this.changed();
    emit("turn", { sessionId: this.sessionId, turn: this });
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
    if (!shown.systemPrompt || shown.sessionId !== this.sessionId || this.temporary) return;
    const body = { session_id: this.sessionId, system_prompt: shown.systemPrompt };
    await api.post("/api/sessions", body).catch((error) => {
      if (error.status !== 409) throw error; // an earlier attempt created the session
    });
    shown.systemPrompt = "";
  }

  #body() {
    return {
      message: this.text,
      timezone: timezone(),
      ...(this.temporary ? { temporary: true, history: this.history.slice(-HISTORY) } : { session_id: this.sessionId }),
      ...(this.temporary && shown.systemPrompt ? { system_prompt: shown.systemPrompt } : {}),
      ...(settings.recall ? { recall: settings.recall } : {}),
      ...(settings.prompt ? { prompt: settings.prompt } : {}),
      ...(this.replaces ? { replaces: this.replaces } : {}),
    };
  }

  #heard(chunk) {
    if (chunk.memory) this.memory = chunk.memory;
    if (chunk.user_message_id) this.userMessageId = chunk.user_message_id;
    if (chunk.message_id) this.messageId = chunk.message_id;
    if (chunk.usage) this.usage = chunk.usage;
    const choice = chunk.choices?.[0];
    this.reply += choice?.delta?.content ?? "";
    if (choice?.finish_reason) this.finishReason = choice.finish_reason;
    this.changed();
  }
}

/** Begin a turn.  It emits the event "turn" when it ends. */
export function takeTurn(request) {
  const turn = new Turn(request);
  turn.take();
  return turn;
}
