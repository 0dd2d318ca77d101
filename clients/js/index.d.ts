/** Answers are JSON objects as the server's /docs has them; the fields that programs mostly read are named here. */
export type Answer = Record<string, any>;
export type Role = "user" | "assistant" | "system" | "tool";
export type Said = { role: Role; content: string };
export type Message = Answer & Said & { id: number; name: string | null; created_at: string };
export type NewMessage = Said & { name?: string; created_at?: string; external_id?: string; extra?: object };
export type Session = Answer & { id: string; title: string; message_count: number; created_at: string };
export type Fact = Answer & { id: number; text: string; category: string; importance: number; pinned: boolean };
export type Item = Answer & { namespace: string[]; key: string; value: any; version: number };
export type Reply = Answer & { reply: string; session_id: string | null; message_id: number | null; usage: Answer };
export type Result = Answer & { session_id: string | null; message_id: number | null; content: string | null };

export interface Options {
  apiKey?: string;
  /** The person whose memory it is. */
  userId?: string;
  /** Milliseconds for a call (30,000), and for one that waits for a model (600,000). */
  timeout?: number;
  replyTimeout?: number;
  /** How often a call is sent again, where the server asks for it or where that does no harm (2). */
  retries?: number;
  fetch?: typeof fetch;
}
export interface ChatOptions {
  session_id?: string;
  name?: string;
  recall?: "auto" | "always" | "tools" | "off";
  model?: string;
  remember?: boolean;
  timezone?: string;
  prompt?: string;
  system_prompt?: string;
  temporary?: boolean;
  history?: { role: "user" | "assistant"; content: string }[];
  replaces?: number;
  /** A chat with the key of an earlier one gets its answer again. Without one, each chat has its own. */
  idempotency_key?: string;
}
export interface SearchOptions {
  session_id?: string;
  after?: string;
  before?: string;
  role?: Role;
  kind?: "message" | "summary" | "fact";
  limit?: number;
  window?: number;
}

export class Recap {
  constructor(baseUrl: string, options?: Options);
  /** The same client on behalf of another person. */
  forUser(userId?: string): Recap;
  chat(message: string, options?: ChatOptions): Promise<Reply>;
  stream(message: string, options?: ChatOptions): Stream;
  recall(message: string, options?: { session_id?: string; tokens?: number }): Promise<Answer & { block: string }>;
  sessions(options?: { q?: string; archived?: boolean; before?: string; after?: string }): AsyncGenerator<Session>;
  session(id: string): Promise<Session>;
  changeSession(id: string, change: { title?: string; pinned?: boolean; archived?: boolean }): Promise<Session>;
  eraseSession(id: string): Promise<Answer>;
  messages(id: string, options?: { order?: "asc" | "desc" }): AsyncGenerator<Message>;
  addMessages(id: string, messages: NewMessage[]): Promise<Answer & { message_ids: number[] }>;
  eraseMessage(id: string, message: number): Promise<Answer>;
  facts(options?: { session_id?: string; q?: string; category?: string; as_of?: string }): AsyncGenerator<Fact>;
  addFact(text: string, options?: { session_id?: string; category?: string; importance?: number }): Promise<Fact>;
  changeFact(id: number, change: { text?: string; category?: string; importance?: number; pinned?: boolean }): Promise<Fact>;
  forgetFact(id: number, options?: { restore?: boolean }): Promise<Answer>;
  search(q: string, options?: SearchOptions): Promise<Answer & { results: Result[] }>;
  putItem(namespace: string[], key: string, value: any, options?: { ttl?: number; index?: string[] }): Promise<Item>;
  getItem(namespace: string[], key: string): Promise<Item>;
  deleteItem(namespace: string[], key: string): Promise<Answer>;
  searchItems(namespace: string[], options?: { query?: string; filter?: object }): Promise<{ items: Item[] }>;
  profile(options?: { as_of?: string }): Promise<Answer>;
  editProfile(patch: object[], options?: { expected_version?: number }): Promise<Answer>;
  giveFeedback(session_id: string, message_id: number, options: { thumbs?: "up" | "down"; text?: string }): Promise<Answer>;
}

/** `for await` gives the words as they come; then `answer` is what `chat` would have returned. */
export class Stream implements AsyncIterable<string> {
  [Symbol.asyncIterator](): AsyncGenerator<string>;
  answer?: Reply;
}

/** A call failed. `status` is the HTTP status, 0 without an answer; `retryAfter` is in seconds. */
export class RecapError extends Error {
  status: number;
  code: string;
  param?: string;
  fields?: Record<string, string[]>;
  retryAfter?: number;
}
export class InvalidRequest extends RecapError {}
export class Unauthenticated extends RecapError {}
export class Forbidden extends RecapError {}
export class NotFound extends RecapError {}
export class Conflict extends RecapError {}
export class LimitReached extends RecapError {}
export class ModelError extends RecapError {}
export class ServerError extends RecapError {}
export class NoAnswer extends RecapError {}
