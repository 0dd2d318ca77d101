import { Operations, type ChatReply, type Event } from "./operations.js";

export * from "./operations.js";

export interface Options {
  apiKey?: string;
  /** The person whose memory it is. */
  userId?: string;
  /** Milliseconds for a call (30,000), and for one that waits for a model, an import or the next event (600,000). */
  timeout?: number;
  replyTimeout?: number;
  /** How often a call is sent again, where the server asks for it or where that does no harm (2). */
  retries?: number;
  /** Of every call. */
  headers?: Record<string, string>;
  /** Ends calls and streams: they fail with its reason. */
  signal?: AbortSignal;
  fetch?: typeof fetch;
}

/** A Recap server, and on whose behalf it is called. Every call fails with a RecapError. */
export class Recap extends Operations {
  constructor(baseUrl?: string, options?: Options);
  /** A client as RECAP_URL, RECAP_API_KEY and RECAP_USER_ID say. `options` are stronger. */
  static fromEnv(options?: Options): Recap;
  /** The same client on behalf of another person. */
  forUser(userId?: string): Recap;
  /** The same client with other options, for some calls: `recap.withOptions({ signal }).search("tea")`. */
  withOptions(options: Options): Recap;
}

/** `for await` gives all items; `page` asks for one page: the first, or that at a `next_cursor`. */
export interface Listing<Item, Page> extends AsyncGenerator<Item> {
  page(place?: { cursor?: string | null; limit?: number }): Promise<Page>;
}

/** `for await` gives the words as they come; then `answer` is what `chat` would have returned. */
export class Stream implements AsyncIterable<string> {
  [Symbol.asyncIterator](): AsyncGenerator<string>;
  answer?: ChatReply;
}

/** `for await` gives the events as they come; `events({ after: stream.position })` goes on behind them. */
export class EventStream implements AsyncIterable<Event> {
  [Symbol.asyncIterator](): AsyncGenerator<Event>;
  position?: string;
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

export const VERSION: string;
