// Turns that are being taken, from the send to the stored reply.
//
// Guarantee: a turn goes on while another session is shown, and there is one at most in each.  The same words sent
// again after a failure carry the same key, so that the server never stores them twice.

import * as api from "../page/api.js";
import { emit, settings, shown, timezone } from "../page/state.js";
import { randomId } from "../page/words.js";

const TEMPORARY = "(temporary)"; // no session id looks like this: they hold no parentheses of ours
const HISTORY = 200; // messages of a temporary chat that are sent along: the API takes no more
const live = new Map(); // by session
const failed = new Map(); // by session: the last one, while it has not been taken up

/** The turn being taken in a session; undefined when there is none. */
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
  changed = () => {}; // set by whoever shows it: called after each piece, and at the end
  #abort = new AbortController();

  /** `resumes`: the stored message whose reply is wanted; `replaces`: the one that this takes the place of. */
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

  /** End the reply here; what was said of it is kept. */
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
        if (error.status !== 404) break; // 404: its first message is still on its way
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
      if (error.status !== 409) throw error; // it was made by an attempt before
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

/** Begin a turn; it ends by itself, with the event "turn". */
export function takeTurn(request) {
  const turn = new Turn(request);
  turn.take();
  return turn;
}
