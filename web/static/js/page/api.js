// The client of the API: requests, errors, streams, and the API key.
//
// Each call names the person in Settings, and the space on display: GET, PATCH and DELETE in the query, POST and PUT in
// the body if there is one.
import { holder, person, space } from "./state.js";
import { hasText, text } from "./words.js";

const KEY = "recap.key"; // in sessionStorage, so it ends with the tab and is not stored with the settings
const WAIT = 250; // milliseconds for another tab to answer
const tabs = new BroadcastChannel(KEY);
const NOBODYS = /^\/(?:health|api\/(?:import|model|profile|prompts|retention|spaces|users|webhooks))/; // or the address names the person itself

/** What the catalogue says of an error, instead of the server's English words for programs and for whoever runs the server. */
function said(code, status) {
  const key = [code, status >= 500 && code.split("_")[0], status && "any"].map((name) => `page.errors.${name}`).find(hasText);
  return key && text(key);
}

/** `message` is for the person on the page; `told` is what the server said, where that is more. */
export class ApiError extends Error {
  constructor({ message = "", status = 0, code }) {
    const own = said(code, status);
    super(own ?? message);
    Object.assign(this, { status, code, told: own ? message : "" });
  }
}

export const signedIn = () => sessionStorage.getItem(KEY) !== null;

/** Forget the key, in all tabs, and what it gave access to. */
export function signOut() {
  tabs.postMessage({ out: true });
  leave();
}

/** Load the page again, without what was typed and not sent; for the holder of a key, if there is one. */
function leave(key = "") {
  sessionStorage.clear();
  if (key) sessionStorage.setItem(KEY, key);
  location.reload();
}

tabs.addEventListener("message", ({ data: { wanted, out } }) => {
  if (wanted && signedIn()) tabs.postMessage({ key: sessionStorage.getItem(KEY) });
  if (out && signedIn()) leave();
});

/** The key that another tab of the page has, or undefined. */
function keyOfAnotherTab() {
  return new Promise((resolve) => {
    tabs.addEventListener("message", ({ data }) => data.key && resolve(data.key));
    setTimeout(resolve, WAIT);
    tabs.postMessage({ wanted: true });
  });
}

let askForKey = async (_) => false;
let asking = null; // until somebody has signed in; then nothing is sent, as the key may be another person's

/** Set `ask(wrong)`, which shows the sign-in dialog and resolves to a key; `wrong`: the last key was refused. */
export function onKeyNeeded(ask) {
  askForKey = (refused) => {
    if (!asking && refused !== sessionStorage.getItem(KEY)) return null; // another key was entered meanwhile
    asking ??= ask(refused !== null).then(async (key) => {
      const before = keyHolder();
      sessionStorage.setItem(KEY, key);
      await learn();
      if (before && before !== keyHolder()) await beginAnew(key);
      asking = null;
    });
    return asking;
  };
}

/** Whom the last key spoke for; undefined before the first one. */
const keyHolder = () => holder.tenant && JSON.stringify([holder.tenant, holder.user_id, Object.keys(holder.spaces ?? {})]);

/** Load the page again for somebody else: nothing stays that was shown or typed before, and what was about to be sent is not. */
function beginAnew(key) {
  history.replaceState(null, "", location.pathname); // the address named a chat of the other's
  leave(key);
  return new Promise(() => {});
}

/** Find out whom the key speaks for before showing any data.  Asks for a key if the server requires one. */
export async function learnWhose() {
  if ((await learn()) !== 401) return;
  const key = !signedIn() && (await keyOfAnotherTab());
  if (key) sessionStorage.setItem(KEY, key);
  if (!key || (await learn()) === 401) await askForKey(sessionStorage.getItem(KEY));
}

/** Read whom the key speaks for, and return the status.  Errors are ignored: the next call reports them. */
async function learn() {
  const key = sessionStorage.getItem(KEY);
  const response = await fetch(addressOf("/api/me"), { headers: withKey(key) }).catch(() => null);
  if (!response?.ok) return response?.status;
  Object.assign(holder, await response.json());
  return response.status;
}

/** The header of a key.  Not Authorization: a proxy that asks for a name and password needs that one for itself. */
const withKey = (key) => (key ? { "X-Api-Key": key } : {});

/** The address of a call, below the path at which the page is served. */
const addressOf = (path) => new URL(`.${path}`, document.baseURI);

async function reach(method, path, { query = {}, body = undefined, headers = {}, signal = undefined } = {}) {
  const inBody = body !== undefined && method !== "PATCH";
  for (;;) {
    if (asking) await asking;
    const whose = NOBODYS.test(path) ? {} : { user_id: person(), space: space() || undefined };
    const address = addressOf(path);
    for (const [name, value] of Object.entries({ ...(inBody ? {} : whose), ...query })) {
      if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, value);
    }
    const isFile = body instanceof Blob || body instanceof FormData;
    if (body instanceof FormData) for (const [name, value] of Object.entries(whose)) if (value) body.set(name, value);
    const sent = body && !isFile ? JSON.stringify({ ...(inBody && whose), ...body }) : body;
    const key = sessionStorage.getItem(KEY);
    const sentHeaders = {
      ...(sent === undefined || body instanceof FormData ? {} : { "Content-Type": sent === body ? "application/octet-stream" : "application/json" }),
      ...withKey(key),
      ...headers,
    };
    const request = { method, signal, headers: sentHeaders, body: sent };
    const response = await fetch(address, request).catch(unlessStopped("network"));
    if (response.status !== 401) return response;
    await askForKey(key);
  }
}

/** To be passed to `catch`: an error of this code, unless the page itself ended the request. */
const unlessStopped = (code) => (error) => {
  throw error.name === "AbortError" ? error : new ApiError({ code });
};

async function refusal(response) {
  const body = await response.json().catch(() => null);
  const { status, statusText: reason } = response;
  const message = text("page.server_answered", { status: String(status), reason });
  return new ApiError({ message, code: "unknown", ...body?.error, status });
}

async function answer(method, path, options) {
  const response = await reach(method, path, options);
  if (!response.ok) throw await refusal(response);
  return response.status === 204 ? null : response.json();
}

/** Paths of the API.  Ids may contain any character. */
export const sessionPath = (id) => `/api/sessions/${encodeURIComponent(id)}`;
export const summaryPath = (sessionId) => `${sessionPath(sessionId)}/summary`;
export const personPath = () => (space() ? `/api/spaces/${encodeURIComponent(space())}` : `/api/users/${encodeURIComponent(person())}`);

/** Each resolves to the JSON of the response, or throws ApiError. */
/** @type {<Path extends string>(path: Path, query?: object) => Promise<import("../../../types/page.d.ts").Answer<Path>>} */
export const get = (path, query) => answer("GET", path, { query });
export const post = (path, body, query) => answer("POST", path, { body, query });
/** Send a file in a form. */
export function upload(path, file) {
  const form = new FormData();
  form.set("file", file);
  return answer("POST", path, { body: form });
}
export const put = (path, body) => answer("PUT", path, { body });
export const patch = (path, body) => answer("PATCH", path, { body });
export const del = (path, query) => answer("DELETE", path, { query });

/** To be passed to `catch`: null if what was asked for does not exist, or is deleted already. */
export function unlessGone(error) {
  if (error.status !== 404) throw error;
  return null;
}

/** The same as `get`, or null if there is no such thing. */
export const find = (path) => get(path).catch(unlessGone);

/** All items of a paginated list. */
/** @type {<Path extends string>(path: Path, query?: object) => Promise<import("../../../types/page.d.ts").Item<Path>[]>} */
export const all = async (path, query = {}) => {
  const items = [];
  let cursor;
  do {
    const page = await get(String(path), { limit: 100, ...query, cursor });
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return items;
};

/** Resolves to {blob, name}, to be saved as a file. */
export async function download(path) {
  const response = await reach("GET", path);
  if (!response.ok) throw await refusal(response);
  const named = /filename="?([^";]+)/.exec(response.headers.get("Content-Disposition") ?? "");
  return { blob: await response.blob(), name: named?.[1] ?? "recap-export.json" };
}

/**
 * POST /api/chat with streaming: calls `heard(chunk)` for each chunk and resolves after [DONE].
 * Throws ApiError also for an error within the stream, and for a stream that breaks off.
 */
export async function chat(body, { key, heard, signal = undefined }) {
  const headers = { "Idempotency-Key": key };
  const response = await reach("POST", "/api/chat", { body: { ...body, stream: true }, headers, signal });
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(unlessStopped("stream_broken"));
    if (done) throw new ApiError({ code: "stream_broken" });
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (event.startsWith(":")) continue; // a comment: the model is silent
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError({ ...chunk.error, status: 502 });
      heard(chunk);
    }
  }
}
