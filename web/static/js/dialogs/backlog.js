// The chats that no summary covers, as after an import: has them summarised on request, and shows how far that is.
//
// Guarantee: no model is called for them before the person asks for it.

import * as api from "../page/api.js";
import { announce, button, el } from "../page/dom.js";
import { emit, settings } from "../page/state.js";
import { text } from "../page/texts.js";

const POLL = 1000; // milliseconds between looks at the progress
const NO_USER = { user: false }; // the path names the person

const path = () => `${api.personPath(settings.user)}/summaries`;
const read = () => api.get(path(), {}, NO_USER);
const start = () => api.post(path(), undefined, NO_USER);
const cancel = () => api.del(path(), NO_USER);

export const backlogElement = el("div.backlog.stack");
let most = 0; // chats that were left when the work shown here began
let timer;

/** Read how much is left, and show it. */
export async function showBacklog(call = read) {
  clearTimeout(timer);
  try {
    const [left, { model }] = await Promise.all([call(), api.get("/health/ready", {}, NO_USER)]);
    if (most && !left.waiting) emit("memory");
    if (most && !left.sessions) announce(text("dialogs.backlog.done"));
    if (!left.sessions) most = 0;
    const focused = backlogElement.contains(document.activeElement);
    backlogElement.replaceChildren(...(left.waiting ? progress(left) : offer(left, model.builtin)));
    if (focused) backlogElement.querySelector("button")?.focus();
    if (left.waiting) timer = setTimeout(() => backlogElement.isConnected && showBacklog(), POLL);
  } catch (error) {
    if (error.status === 404) return backlogElement.replaceChildren(); // nothing is stored about this person
    const again = button(text("dialogs.backlog.try_again"), () => showBacklog());
    backlogElement.replaceChildren(el("p.notice.error", { role: "alert" }, error.message, " ", again));
  }
}

function progress({ sessions: count }) {
  most = Math.max(most, count);
  return [
    el("div.row", {}, el("p.grow", {}, text("dialogs.backlog.writing", { count })), button(text("dialogs.backlog.cancel"), () => showBacklog(cancel))),
    el("progress", { max: most, value: most - count, "aria-label": text("dialogs.backlog.progress") }),
  ];
}

function offer({ sessions: count, tokens, failed }, builtin) {
  if (!count) return [];
  const cost = builtin ? text("dialogs.backlog.no_cost") : text("dialogs.backlog.cost", { tokens });
  const words = `${text("dialogs.backlog.left", { count })} ${cost}`;
  return [
    el("p.small", {}, words, failed > 0 && ` ${text("dialogs.backlog.failed", { count: failed })}`),
    el("div.row", {}, button(text(most ? "dialogs.backlog.resume" : "dialogs.backlog.start"), () => showBacklog(start))),
  ];
}
