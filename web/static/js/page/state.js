// The state that the panels share: the person, the session on display, and events.
//
// Events for `on(name, listener)`:
//   session    another session is shown (detail: its id; null for a chat without messages)
//   begun      a message was stored, and its reply is being written (detail: {sessionId})
//   turn       a turn succeeded or failed (detail: {sessionId, turn?}; without `turn` it was another tab's turn);
//              the summary and facts may change from now on
//   sessions   a session was renamed, or its message `erased` (detail: {sessionId, erased?}), or some are `gone` (detail: {gone}); null for all
//   summarised the mini model updated a summary, and perhaps the chat's title and the facts (detail: {sessionId})
//   facts      the facts that apply to the chat on display were read (detail: the facts)
//   memory     the person changed the summary or a fact, in any panel
//   models     an administrator set another model server
//   person     another person's or space's memory is shown, so all panels reload
//   erased     all data of a person or space was erased (detail: {of}); where it is on display, "person" follows
//
// Other tabs hear of what changed on the server, without the details that only this tab has.

const SHARED = ["begun", "turn", "sessions", "summarised", "memory", "models", "erased"];
const bus = new EventTarget();
const tabs = new BroadcastChannel("recap");
tabs.addEventListener("message", ({ data }) => dispatch(data.name, data.detail));

const dispatch = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));

export function on(name, listener) {
  bus.addEventListener(name, (/** @type {any} */ event) => listener(event.detail));
}

export function emit(name, detail = null) {
  dispatch(name, detail);
  const { turn, ...told } = detail ?? {};
  if (SHARED.includes(name) && told.sessionId !== null) tabs.postMessage({ name, detail: told });
}

/**
 * What the browser stores, as texts; an empty one is what is not stored.  Beside what belongs to single chats:
 *
 *   user      the user_id of the person, unless the key belongs to one
 *   space     the space on display, whose memory it is then; empty: the person's own
 *   withMe    on or off: whether replies in a space use the person's memory too; empty: as the key says
 *   recall    auto, always, tools, off; empty: the server's setting
 *   prompt    the name of the summary prompt; empty: the server's setting
 *   timezone  an IANA name; empty: the browser's
 *   theme     light or dark; empty: the system's
 *   chart     shown or hidden: the chart of tokens; empty: shown where there is room, once tokens were saved
 *
 * Guarantee: what a tab sends goes to the memory that it shows. So whose that is stays with the tab, whatever others show; a new tab shows what was
 * chosen last.
 */
export const stored = (key) => (OF_TAB.includes(key) ? sessionStorage : localStorage).getItem(`recap.${key}`) ?? "";

export function keep(key, value) {
  if (OF_TAB.includes(key)) sessionStorage.setItem(`recap.${key}`, value);
  if (value) localStorage.setItem(`recap.${key}`, value);
  else localStorage.removeItem(`recap.${key}`);
}

const OF_TAB = ["user", "space", "withMe"];
for (const name of OF_TAB.map((key) => `recap.${key}`)) sessionStorage.setItem(name, sessionStorage.getItem(name) ?? localStorage.getItem(name) ?? "");

/** Remove what the browser has stored of a session that was deleted. */
export function forgetChat(sessionId) {
  keep(`model.${sessionId}`, "");
  for (const name of ["draft", "reply"]) sessionStorage.removeItem(`recap.${name}.${sessionId}`);
}

/** The person of the API key and what it may do, set by api.js.  If `user_id` is null, the person is chosen in Settings. */
export const holder = { tenant: "", user_id: null, spaces: null, may: { chat: true, read: true, change: true, tenant: true, server: true } };

/** The user_id of the person.  All sessions of the page belong to them, or to the space on display. */
export const person = () => holder.user_id ?? (stored("user") || "me");

/** The space on display, or "".  A key of spaces alone is always in one. */
export const space = () => (opens(stored("space")) ? stored("space") : "") || (holder.user_id === null && Object.keys(holder.spaces ?? {})[0]) || "";
const opens = (name) => (holder.user_id === null && holder.spaces === null) || name in (holder.spaces ?? {});

/** Whose memory the page shows, by name. */
export const whose = () => space() || person();
on("erased", ({ of }) => of === whose() && emit("person"));

/** Whether replies in a space use the person's memory too. */
export const usesOwn = () => (stored("withMe") || (holder.user_id === null ? "off" : "on")) === "on";
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
export const timezone = () => stored("timezone") || HERE;

/**
 * The session on display.  Its id is null before the first message, and in a temporary chat, whose id in this tab is `temporary`.  `remember`: whether its
 * memory is on; `remembersPerson`: whether that of the person is.
 */
export const shown = { sessionId: null, temporary: /** @type {string | false} */ (false), systemPrompt: "", remember: true, remembersPerson: true };
