// The loaded part of a session, a continuous range of its messages and the cost of its turns; and the whole of it as a file.
import * as api from "../page/api.js";
import { saveFile } from "../page/dom.js";
import { moment, randomId, speaker, text } from "../page/words.js";

const PAGE = 40;
const TURNS = 500; // the newest turns; older replies show no cost

export class Thread {
  items = []; // messages, oldest first
  older = null; // cursors to the messages before and after; null: there are none
  newer = null;
  turns = new Map(); // by the reply's message id, or without a reply by that of the message
  versions = new Map(); // the ids of all versions of a message that has several, by its id
  session = null;

  constructor(sessionId) {
    this.sessionId = sessionId;
  }

  get path() {
    return api.sessionPath(this.sessionId);
  }

  /** Load the newest messages.  Throws ApiError, with status 404 if there is no such session. */
  static async latest(sessionId) {
    const thread = new Thread(sessionId);
    await Promise.all([thread.loadOlder(), thread.#readRest()]);
    return thread;
  }

  /** Load the messages around one message. */
  static async around(sessionId, messageId) {
    const thread = new Thread(sessionId);
    const [page] = await Promise.all([thread.#page({ around: messageId }), thread.#readRest()]);
    thread.items = page.items;
    thread.older = page.previous_cursor;
    thread.newer = page.next_cursor;
    return thread;
  }

  #page(query) {
    return api.get(`${this.path}/messages`, { limit: PAGE, ...query });
  }

  #readRest() {
    return Promise.all([this.readSession(), this.#readTurns(), this.#readVersions()]);
  }

  /** This thread, with the older messages that `before` has loaded of the same session. */
  after(before) {
    const at = before.items.findIndex((message) => message.id === this.items[0]?.id);
    if (at < 0 || !this.older) return this;
    this.items.unshift(...before.items.slice(0, at));
    this.older = before.older;
    return this;
  }

  async loadOlder() {
    const page = await this.#page({ order: "desc", cursor: this.older });
    this.items.unshift(...page.items.reverse());
    this.older = page.next_cursor;
  }

  async loadNewer() {
    const page = await this.#page({ order: "asc", cursor: this.newer });
    this.items.push(...page.items);
    this.newer = page.next_cursor;
  }

  holds(messageId) {
    return this.items.some((message) => message.id === messageId);
  }

  /** The person's last message, if it has no reply. */
  get unanswered() {
    const last = this.items.at(-1);
    return this.newer === null && last?.role === "user" ? last : null;
  }

  /** Add a successful turn without reloading. */
  add(turn) {
    const { message_id: id = randomId(), user_message_id: asked = randomId() } = turn.told; // temporary ones have none
    const said = { session_id: this.sessionId, name: null };
    if (!this.holds(asked)) {
      const message = { ...said, role: "user", content: turn.text, created_at: turn.startedAt, extra: { attachments: turn.files } };
      this.items.push({ ...message, id: asked });
    }
    if (!this.holds(id)) this.items.push({ ...said, id, role: "assistant", content: turn.reply, created_at: new Date().toISOString() });
    this.turns.set(id, { ...said, ...turn.told, message_id: id, thought: turn.thought });
  }

  /** Change what is known of a message. */
  mark(messageId, changes) {
    this.items = this.items.map((message) => (message.id === messageId ? { ...message, ...changes } : message));
  }

  /** Remove an erased message, and reload the session and the turns, which may have shown it. */
  async leaveOut(messageId) {
    this.items = this.items.filter((message) => message.id !== messageId);
    this.turns.clear();
    await Promise.all([this.readSession(), this.#readTurns()]);
  }

  async readSession() {
    this.session = await api.get(this.path);
  }

  async #readTurns() {
    const page = await api.get(`${this.path}/turns`, { limit: TURNS });
    for (const turn of page.items) {
      this.turns.set(turn.message_id ?? turn.user_message_id, { ...turn, session_id: this.sessionId });
    }
  }

  async #readVersions() {
    const { items } = await api.get(`${this.path}/messages/versions`);
    this.versions = new Map(items.map((item) => [item.message_id, item.versions]));
  }
}

/** Save a chat as a Markdown file: each message under who said it and when.  Throws ApiError. */
export async function saveChat(sessionId) {
  const path = api.sessionPath(sessionId);
  const [{ title }, messages] = await Promise.all([api.get(path), api.all(`${path}/messages`)]);
  const head = (message) => `## ${speaker(message)}, ${moment(message.created_at)}`;
  const parts = messages.map((message) => `${head(message)}\n\n${message.content}\n`);
  const words = [`# ${title || text("page.untitled_chat")}\n`, ...parts].join("\n");
  const name = title.replace(/[\s\\/:*?"<>|\p{Cc}]+/gu, " ").trim(); // without what file systems forbid
  saveFile(new Blob([words], { type: "text/markdown" }), `${name || text("chat.thread.file")}.md`);
}
