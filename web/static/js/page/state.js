// What the panels share: who is talking, which session is shown, and what happened.
//
// Events, heard with `on(name, listener)`:
//   session    another session is shown (detail: its id, or null for one that is not begun)
//   turn       a turn ended, well or not (detail: {sessionId, turn?}; no turn: another page took it); summaries and
//              facts may change from here
//   sessions   the list of sessions changed: made, renamed, erased
//   memory     the summary or a fact was changed by hand, in any panel
//   person     another person's memory is shown: everything is read anew

const bus = new EventTarget();

export function on(name, listener) {
  bus.addEventListener(name, (event) => listener(event.detail));
}

export function emit(name, detail = null) {
  bus.dispatchEvent(new CustomEvent(name, { detail }));
}

// A browser that forbids storage still chats; what is chosen lasts as long as the page.
const unstored = new Map();

function stored(key, fallback) {
  try {
    return localStorage.getItem(`recap.${key}`) ?? fallback;
  } catch {
    return unstored.get(key) ?? fallback;
  }
}

function keep(key, value) {
  unstored.set(key, value);
  try {
    if (value === null || value === "") localStorage.removeItem(`recap.${key}`);
    else localStorage.setItem(`recap.${key}`, value);
  } catch {
    // forbidden: kept in `unstored`
  }
}

/** Choices that outlive the page, with their defaults.  Reading is `settings.user`, writing `settings.user = "ada"`. */
const DEFAULTS = {
  user: "me", // whose memory: a user_id, so that all of the page's sessions are one person's
  recall: "", // auto, always, tools, off; empty: as the server is set
  prompt: "", // the summary prompt's name; empty: as the server is set
  timezone: "", // an IANA name; empty: the browser's
  theme: "", // light or dark; empty: the system's
  chart: "", // "shown" or "hidden": whether the chart of tokens is open; empty: where there is room for it
};

/** Whom the key speaks for, and what it may do; api.js learns it.  `user_id` null: any person, who is chosen in Settings. */
export const holder = { user_id: null, scopes: ["chat", "read", "admin"] };

export const settings = {};
for (const [key, fallback] of Object.entries(DEFAULTS)) {
  const bound = () => (key === "user" ? holder.user_id : null); // for such a key there is nobody else
  Object.defineProperty(settings, key, {
    enumerable: true,
    get: () => bound() ?? stored(key, fallback),
    set: (value) => keep(key, value),
  });
}

export function timezone() {
  return settings.timezone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** The session that is shown; its id is null until its first message is sent, and in a temporary chat. */
export const shown = { sessionId: null, temporary: false, systemPrompt: "" };
