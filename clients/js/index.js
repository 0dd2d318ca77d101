// A client of Recap: a method for each call, with `fetch` and nothing else.  Names are those of the API.
import { Operations } from "./operations.js";

export const VERSION = "0.3.0";

/** A call failed.  `code` is a stable word for programs; `status` is the HTTP status, 0 without an answer. */
export class RecapError extends Error {
  constructor(status, { code, message, param, fields }, retryAfter) {
    super(message);
    this.name = new.target.name;
    Object.assign(this, { status, code, param, fields, retryAfter });
  }
}
export class InvalidRequest extends RecapError {}
export class Unauthenticated extends RecapError {}
export class Forbidden extends RecapError {}
export class NotFound extends RecapError {}
export class Conflict extends RecapError {}
export class LimitReached extends RecapError {}
export class ModelError extends RecapError {}
export class ServerError extends RecapError {}
/** The server can't be reached, or its answer did not come whole and in time.  The call may have happened. */
export class NoAnswer extends RecapError {
  constructor(cause) {
    const message = `There is no answer, or not all of it: ${cause.cause ?? cause}. The call may have been carried out.`;
    super(0, { code: "no_answer", message });
    this.cause = cause;
  }
}

const BY_TYPE = {
  invalid_request_error: InvalidRequest,
  authentication_error: Unauthenticated,
  permission_error: Forbidden,
  not_found_error: NotFound,
  conflict_error: Conflict,
  rate_limit_error: LimitReached,
  model_error: ModelError,
  server_error: ServerError,
};
const AWAY = [0, 502, 503, 504]; // 0: no answer
const PAUSE = 500; // milliseconds before a call is sent again, doubled each time
const PAUSE_MAX = 60; // seconds: a longer Retry-After is the program's to wait for
const PAGE = 100;
const PLACES = ["path", "query"]; // where a call may name its person, beside a field of its body
const SLOW = ["/api/import", "/api/model-server/test", "/v1/completions", "/v1/embeddings", "/v1/moderations"];
const DEFAULT_URL = "http://127.0.0.1:8000";

/** A Recap server, and on whose behalf it is called: `operations.js` has a method for each of its calls. */
export class Recap extends Operations {
  #base;
  #options;

  constructor(baseUrl = DEFAULT_URL, options = {}) {
    super();
    this.#base = baseUrl.replace(/\/+$/, "");
    this.#options = { timeout: 30_000, replyTimeout: 600_000, retries: 2, fetch: globalThis.fetch, ...options };
  }

  static fromEnv(options) {
    const { RECAP_URL, RECAP_API_KEY, RECAP_USER_ID } = globalThis.process.env;
    return new Recap(RECAP_URL || undefined, { apiKey: RECAP_API_KEY || undefined, userId: RECAP_USER_ID || undefined, ...options });
  }

  forUser(userId) { return this.withOptions({ userId }); }
  withOptions(options) {
    const headers = { ...this.#options.headers, ...options.headers };
    return new Recap(this.#base, { ...this.#options, ...options, headers });
  }

  _send(call) { return this.#sent(call, answerOf); }
  _open(call) {
    const body = { ...call.body, stream: true, idempotency_key: call.body.idempotency_key ?? randomKey() }; // one turn, read twice
    return new Stream(() => this.#sent({ ...call, body }, opened), this.#options.signal);
  }
  _listen(call) { return new EventStream(() => this.#sent(call, opened), this.#options.signal); }
  _each(call) {
    const page = (place) => this._send({ ...call, query: { limit: PAGE, ...call.query, ...place } });
    return Object.assign(itemsOf(page), { page });
  }

  /** Send a call, again where the server asks for it or where that does no harm, and read the good response. */
  async #sent(call, read) {
    const { timeout, replyTimeout, retries, fetch, signal } = this.#options;
    const key = call.turn ? (call.body.idempotency_key ?? randomKey()) : undefined; // all attempts have one
    const repeatable = call.method === "GET" || call.turn || call.repeatable;
    const [address, request] = this.#request(call, key);
    for (let attempt = 0; ; attempt++) {
      let failure;
      let isOpen = false;
      const silence = new Silence(call.turn || SLOW.includes(call.path) || read === opened ? replyTimeout : timeout);
      try {
        const either = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
        const response = await fetch(address, { ...request, signal: either });
        isOpen = response.ok && read === opened;
        if (response.ok) return await read(response, silence);
        failure = await errorOf(response);
      } catch (error) {
        signal?.throwIfAborted(); // the program's own wish is no failure
        failure = new NoAnswer(error);
      } finally {
        if (!isOpen) silence.end();
      }
      const { status, retryAfter } = failure;
      const again = retryAfter === undefined ? repeatable && AWAY.includes(status) : retryAfter <= PAUSE_MAX;
      if (!again || attempt === retries) throw failure;
      const pause = retryAfter === undefined ? PAUSE * 2 ** attempt : retryAfter * 1000;
      await new Promise((resume) => setTimeout(resume, pause));
      signal?.throwIfAborted();
    }
  }

  /** The address of a call, and what `fetch` takes beside it. A call names its person where the document says. */
  #request({ method, path, ids = {}, query, body, document, form, person }, key) {
    const { apiKey, userId, headers: own } = this.#options;
    const { user_id, idempotency_key: _, ...values } = body ?? query ?? {};
    const who = user_id ?? userId ?? undefined;
    if (userId != null && who !== userId) {
      throw new TypeError(`This client is for ${userId}. Use forUser(${JSON.stringify(who)}) to call for another person.`);
    }
    if (person === "path" && who === undefined) {
      throw new TypeError("This call is about a person. Make the client with a userId, or use forUser.");
    }
    const asked = { ...(body === undefined && values), ...(person === "query" && { user_id: who }) };
    const content = document ?? (body && values);
    if (body && person && !PLACES.includes(person) && who !== undefined) {
      content[person] = person === "metadata" ? { ...values.metadata, user_id: who } : who;
    }
    const isBytes = content instanceof Blob || content instanceof ArrayBuffer || ArrayBuffer.isView(content);
    const sent = form ? formOf(content) : isBytes ? content : JSON.stringify(content);
    const type = { "Content-Type": isBytes ? "application/octet-stream" : "application/json" };
    const headers = { ...(!form && type), ...own }; // that of a form comes with it
    if (apiKey !== undefined) headers.Authorization = `Bearer ${apiKey}`;
    if (key !== undefined) headers["Idempotency-Key"] = key;
    const place = path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(name === "user_id" ? who : ids[name]));
    const given = Object.entries(asked).filter(([, value]) => value !== undefined && value !== null);
    const text = new URLSearchParams(given.map(([name, value]) => [name, inQuery(value)]));
    return [`${this.#base}${place}?${text}`, { method, headers, body: sent }];
  }
}

/** Iterate over it for the words of a reply as they come; then `answer` is what `chat` would have returned. */
export class Stream {
  #open;
  #signal;
  answer;

  constructor(open, signal) {
    this.#open = open;
    this.#signal = signal;
  }

  async *[Symbol.asyncIterator]() {
    let said = {};
    let reply = "";
    for await (const [field, event] of fields(await this.#open(), this.#signal)) {
      if (field !== "data") continue;
      if (event === "[DONE]") {
        const { delta, ...choice } = said.choices[0];
        const choices = [{ ...choice, message: { role: "assistant", content: reply } }];
        this.answer = { ...said, object: "chat.completion", choices, reply };
        return;
      }
      const chunk = JSON.parse(event);
      if (chunk.error) throw failed(200, chunk);
      said = { ...said, ...chunk }; // what comes again is newer
      if (chunk.withdraws) reply = ""; // the words so far were a thought
      const words = chunk.choices[0].delta.content;
      if (words) yield words;
      reply += words ?? "";
    }
    throw new NoAnswer("the stream was cut");
  }
}

/** Iterate over it for the events as they come; `events({ after: stream.position })` goes on behind them. */
export class EventStream {
  #open;
  #signal;
  position;

  constructor(open, signal) {
    this.#open = open;
    this.#signal = signal;
  }

  async *[Symbol.asyncIterator]() {
    for await (const [field, value] of fields(await this.#open(), this.#signal)) {
      if (field === "id") this.position = value;
      if (field === "data") yield JSON.parse(value);
    }
  }
}

/** The end of a wait: its signal aborts after so many milliseconds in which the server says nothing. */
class Silence {
  #controller = new AbortController();
  #milliseconds;
  #timer;

  constructor(milliseconds) {
    this.#milliseconds = milliseconds;
    this.begin();
  }

  get signal() { return this.#controller.signal; }
  begin() {
    this.end();
    const late = new DOMException(`no word for ${this.#milliseconds / 1000} s`, "TimeoutError");
    this.#timer = setTimeout(() => this.#controller.abort(late), this.#milliseconds);
  }
  end() { clearTimeout(this.#timer); }
}

function opened(response, silence) { return { response, silence }; }

/** The fields of server-sent events, each with its value.  Leaving the loop closes the connection. */
async function* fields({ response, silence }, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let rest = "";
    for (;;) {
      silence.begin();
      const { done, value } = await reader.read().catch((error) => {
        signal?.throwIfAborted();
        throw new NoAnswer(error);
      });
      if (done) return;
      silence.end(); // the program may take its time
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.includes(": ")) yield [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)];
    }
  } finally {
    silence.end();
    reader.cancel().catch(() => {}); // it may have failed already
  }
}

/** The items of a listing, page by page. */
async function* itemsOf(page) {
  let cursor;
  do {
    const { items, next_cursor } = await page({ cursor });
    yield* items;
    cursor = next_cursor;
  } while (cursor !== null);
}

function inQuery(value) {
  return Array.isArray(value) ? value.join(".") : value instanceof Date ? value.toISOString() : value;
}

function formOf(fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined && value !== null) form.append(name, value);
  return form;
}

/** A new Idempotency-Key, also without HTTPS. */
function randomKey() { return crypto.getRandomValues(new Uint32Array(4)).join("-"); }

async function answerOf(response) {
  if (response.status === 204) return undefined;
  return response.headers.get("Content-Type")?.startsWith("application/json") ? response.json() : response.text();
}

async function errorOf(response) {
  const wait = response.headers.get("Retry-After");
  return failed(response.status, await response.json().catch(() => null), /^\d+$/.test(wait) ? Number(wait) : undefined);
}

function failed(status, body, retryAfter) {
  const message = `The server answered with status ${status}, and not as Recap does.`;
  const said = body?.error?.code ? body.error : { code: "not_recap", message };
  return new (BY_TYPE[said.type] ?? RecapError)(status, said, retryAfter);
}
