// The chats that no summary covers, as after an import: has them summarised on request, and shows how far that is.
//
// Guarantee: no model is called for them before the person asks for it.

import * as api from "../page/api.js";
import { announce, button, el } from "../page/dom.js";
import { emit, settings } from "../page/state.js";
import { number, plural } from "../page/words.js";

const POLL = 1000; // milliseconds between looks at the progress
const NO_USER = { user: false }; // the path names the person

const path = () => `${api.personPath(settings.user)}/summaries`;
const read = () => api.get(path(), {}, NO_USER);
const start = () => api.post(path(), undefined, NO_USER);
const cancel = () => api.del(path(), NO_USER);

/** `{element, show()}`.  `show()` reads how much is left. */
export function backlog() {
  const element = el("div.backlog.stack");
  let most = 0; // chats that were left when the work shown here began
  let timer;

  async function show(call = read) {
    clearTimeout(timer);
    try {
      const [left, { model }] = await Promise.all([call(), api.get("/health/ready", {}, NO_USER)]);
      if (most && !left.waiting) emit("memory");
      if (most && !left.sessions) announce("Summaries and facts are written");
      const focused = element.contains(document.activeElement);
      element.replaceChildren(...(left.waiting ? progress(left) : offer(left, model.builtin)));
      if (focused) element.querySelector("button")?.focus();
      if (left.waiting) timer = setTimeout(() => element.isConnected && show(), POLL);
    } catch (error) {
      if (error.status === 404) return element.replaceChildren(); // nothing is stored about this person
      element.replaceChildren(el("p.notice.error", { role: "alert" }, error.message, " ", button("Try again", () => show())));
    }
  }

  function progress({ sessions }) {
    most = Math.max(most, sessions);
    return [
      el("div.row", {}, el("p.grow", {}, `Writing summaries and facts: ${plural(sessions, "chat")} left.`), button("Cancel", () => show(cancel))),
      el("progress", { max: most, value: most - sessions, "aria-label": "Chats with a summary" }),
    ];
  }

  function offer({ sessions, tokens, failed }, builtin) {
    if (!sessions) return [];
    const cost = builtin ? "The built-in model does this, and it costs nothing." : `The model for summaries would use about ${number(tokens)} tokens.`;
    const words = `${plural(sessions, "chat")} ${sessions === 1 ? "has" : "have"} words that no summary covers. You can search them. ` +
      `With summaries and facts, Recap also remembers them in other chats. ${cost}`;
    return [
      el("p.small", {}, words, failed > 0 && ` It failed for ${plural(failed, "chat")} last time.`),
      el("div.row", {}, button(most ? "Resume" : "Write summaries and facts", () => show(start))),
    ];
  }

  return { element, show };
}
