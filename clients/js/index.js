// A client of Recap: a method for each call, with `fetch` and nothing else.  Names are those of the API.

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
    const message = `There is no answer, or not all of it: ${cause}. The call may have been carried out.`;
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

/** A Recap server, and on whose behalf it is called. */
export class Recap {
  #base;
  #options;

  constructor(baseUrl, options = {}) {
    this.#base = baseUrl.replace(/\/+$/, "");
    this.#options = { timeout: 30_000, replyTimeout: 600_000, retries: 2, fetch: globalThis.fetch, ...options };
  }

  forUser(userId) { return new Recap(this.#base, { ...this.#options, userId }); }

  chat(message, options) { return this.#json(turn({ message, ...options })); }
  stream(message, options) { return new Stream(() => this.#sent(turn({ message, stream: true, ...options }))); }
  recall(message, options) { return this.#json(call("POST", "/api/recall", { message, ...options }, true)); }

  sessions(options) { return this.#each("/api/sessions", options); }
  session(id) { return this.#json(call("GET", at`/api/sessions/${id}`)); }
  changeSession(id, change) { return this.#json(call("PATCH", at`/api/sessions/${id}`, change, true)); }
  eraseSession(id) { return this.#json(call("DELETE", at`/api/sessions/${id}`)); }
  messages(id, options) { return this.#each(at`/api/sessions/${id}/messages`, options); }
  addMessages(id, messages) {
    const known = messages.every((message) => message.external_id !== undefined);
    return this.#json(call("POST", at`/api/sessions/${id}/messages`, { messages }, known));
  }
  eraseMessage(id, message) { return this.#json(call("DELETE", at`/api/sessions/${id}/messages/${message}`)); }

  facts(options) { return this.#each("/api/facts", options); }
  addFact(text, options) { return this.#json(call("POST", "/api/facts", { text, ...options })); }
  changeFact(id, change) { return this.#json(call("PATCH", at`/api/facts/${id}`, change, true)); }
  forgetFact(id, options) { return this.#json(call("DELETE", at`/api/facts/${id}`, options)); }
  search(q, options) { return this.#json(call("GET", "/api/search", { q, ...options })); }

  putItem(namespace, key, value, options) {
    return this.#json(call("PUT", "/api/store/items", { namespace, key, value, ...options }, true));
  }
  getItem(namespace, key) { return this.#json(call("GET", "/api/store/items", { namespace: namespace.join("."), key })); }
  deleteItem(namespace, key) {
    return this.#json(call("DELETE", "/api/store/items", { namespace: namespace.join("."), key }));
  }
  searchItems(namespace, options) {
    return this.#json(call("POST", "/api/store/search", { namespace_prefix: namespace, ...options }, true));
  }

  profile(options) { return this.#json(call("GET", this.#profile, options)); }
  editProfile(patch, options) { return this.#json(call("PATCH", this.#profile, { patch, ...options })); }
  giveFeedback(session_id, message_id, options) {
    return this.#json(call("POST", "/api/feedback", { session_id, message_id, ...options }, true));
  }

  get #profile() {
    const { userId } = this.#options;
    if (userId === undefined) throw new TypeError("This call is about a person. Make the client with a userId.");
    return at`/api/users/${userId}/profile`;
  }

  async *#each(path, options) {
    let cursor;
    do {
      const page = await this.#json(call("GET", path, { limit: PAGE, ...options, cursor }));
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor !== null);
  }

  #json(call) { return this.#sent(call, (response) => response.json()); }

  /** Send a call, again where the server asks for it or where that does no harm, and read the good response. */
  async #sent(call, read = (response) => response) {
    const { timeout, replyTimeout, retries, fetch } = this.#options;
    for (let attempt = 0; ; attempt++) {
      let failure;
      try {
        const signal = AbortSignal.timeout(call.key === undefined ? timeout : replyTimeout);
        const response = await fetch(...this.#request(call, signal));
        if (response.ok) return await read(response);
        failure = await errorOf(response);
      } catch (error) {
        failure = new NoAnswer(error);
      }
      const { status, retryAfter } = failure;
      const again = retryAfter === undefined ? call.repeatable && AWAY.includes(status) : retryAfter <= PAUSE_MAX;
      if (!again || attempt === retries) throw failure;
      const pause = retryAfter === undefined ? PAUSE * 2 ** attempt : retryAfter * 1000;
      await new Promise((resume) => setTimeout(resume, pause));
    }
  }

  #request({ method, path, query, body, key }, signal) {
    const { apiKey, userId } = this.#options;
    const headers = { "Content-Type": "application/json" };
    if (apiKey !== undefined) headers.Authorization = `Bearer ${apiKey}`;
    if (key !== undefined) headers["Idempotency-Key"] = key;
    const person = path.startsWith("/api/users/") ? undefined : userId; // there the path says who
    if (method === "POST" || method === "PUT") body = { ...body, user_id: person };
    else query = { ...query, user_id: person };
    const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined));
    return [`${this.#base}${path}?${given}`, { method, headers, signal, body: JSON.stringify(body) }];
  }
}

/** Iterate over it for the words of a reply as they come; then `answer` is what `chat` would have returned. */
export class Stream {
  #open;
  answer;

  constructor(open) { this.#open = open; }

  async *[Symbol.asyncIterator]() {
    let said = {};
    let reply = "";
    for await (const event of events(await this.#open())) {
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

/** The data of each server-sent event.  Leaving the loop closes the connection. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read().catch((error) => { throw new NoAnswer(error); });
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) yield line.slice("data: ".length);
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have failed already
  }
}

/** A call: `values` are its query, or its body.  `repeatable`: sent twice, it does what it does once. */
function call(method, path, values, repeatable = method === "GET") {
  const hasBody = method !== "GET" && method !== "DELETE";
  return { method, path, query: hasBody ? {} : values, body: hasBody ? values : undefined, repeatable };
}

function turn({ idempotency_key, ...values }) {
  const key = idempotency_key ?? crypto.getRandomValues(new Uint32Array(4)).join("-"); // also without HTTPS
  return { ...call("POST", "/api/chat", values, true), key };
}

/** An address with its ids escaped. */
function at(parts, ...ids) { return String.raw({ raw: parts }, ...ids.map(encodeURIComponent)); }

async function errorOf(response) {
  const wait = response.headers.get("Retry-After");
  return failed(response.status, await response.json().catch(() => null), /^\d+$/.test(wait) ? Number(wait) : undefined);
}

function failed(status, body, retryAfter) {
  const message = `The server answered with status ${status}, and not as Recap does.`;
  const said = body?.error?.code ? body.error : { code: "not_recap", message };
  return new (BY_TYPE[said.type] ?? RecapError)(status, said, retryAfter);
}
