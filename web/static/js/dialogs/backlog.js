// The chats that no summary covers, as after an import: has them summarised on request, and shows how far that is.
//
// Guarantee: no model is called for them before the person asks for it.
import * as api from "../page/api.js";
import { announce } from "../page/dom.js";
import { Trouble, html, render } from "../page/html.js";
import { emit } from "../page/state.js";
import { text } from "../page/words.js";

const POLL = 1000; // milliseconds between looks at the progress

const path = () => `${api.personPath()}/summaries`;
const start = () => api.post(path());
const cancel = () => api.del(path());
export const backlogElement = document.createElement("div");
let most = 0; // chats that were left when the work shown here began
let timer;

/** Read how much is left, and show it. */
export async function showBacklog(call = () => api.find(path())) {
  clearTimeout(timer);
  try {
    const [left, { model }] = await Promise.all([call(), api.get("/health/ready")]);
    const { sessions: count = 0, waiting = 0 } = left ?? {}; // null: nothing is stored about this person
    if (most && !waiting) emit("memory");
    if (most && !count) announce(text("dialogs.backlog.done"));
    most = count && waiting ? Math.max(most, count) : count && most;
    render(count > 0 && html`<${Backlog} ...${left} builtin=${model.builtin} />`, backlogElement);
    if (waiting) timer = setTimeout(() => backlogElement.isConnected && showBacklog(), POLL);
  } catch ({ message }) {
    render(html`<${Trouble} message=${message} again=${() => showBacklog()} />`, backlogElement);
  }
}

function Backlog({ sessions: count, waiting, tokens, failed, builtin }) {
  const cost = builtin ? text("dialogs.backlog.no_cost") : text("dialogs.backlog.cost", { tokens });
  const words = [`${text("dialogs.backlog.left", { count })} ${cost}`];
  if (failed) words.push(text("dialogs.backlog.failed", { count: failed }));
  const begin = most ? text("dialogs.backlog.resume") : text("dialogs.backlog.start");
  return html`<div class="row wrap">
      <p class="grow small">${waiting ? text("dialogs.backlog.writing", { count }) : words.join(" ")}</p>
      <button onClick=${() => showBacklog(waiting ? cancel : start)}>${waiting ? text("page.cancel") : begin}</button>
    </div>
    ${waiting > 0 && html`<progress max=${most} value=${most - count} aria-label=${text("dialogs.backlog.progress")} />`}
  `;
}
