// Starts the page: the panels, the global keys, and the notice about the built-in model.
import { composer } from "./chat/composer.js";
import { newChat, startConversation } from "./chat/conversation.js";
import { startSessions } from "./chat/sessions.js";
import { liveTurn } from "./chat/turns.js";
import { startDrop } from "./dialogs/drop.js";
import { startSignIn } from "./dialogs/signin.js";
import { startMemory } from "./memory/memory.js";
import * as api from "./page/api.js";
import { PHONE, byId } from "./page/dom.js";
import { html, render } from "./page/html.js";
import { startPanels } from "./page/panels.js";
import { on, shown } from "./page/state.js";
import { text, textParts } from "./page/words.js";

// What is seen first needs none of the dialogs.  One that can't be loaded is told above the message box.
const unloaded = () => composer.complain(text("page.errors.network"));
const openManage = (tab) => import("./dialogs/manage.js").then((dialog) => dialog.openManage(tab)).catch(unloaded);
const openSettings = () => import("./dialogs/settings.js").then((dialog) => dialog.openSettings()).catch(unloaded);

startSignIn();
await api.learnWhose();
startPanels();
startMemory();
startSessions({ openManage: () => openManage(), openSettings });
startConversation();
startDrop(() => openManage("data"));
document.addEventListener("keydown", keys);
sayWhoAnswers();
on("models", sayWhoAnswers);
if (!PHONE) composer.focus();

function keys(event) {
  if (document.querySelector("dialog[open]")) return;
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === "k") {
    event.preventDefault();
    const search = byId("search");
    if (!search.checkVisibility()) document.querySelector('[data-open-panel="sessions"]').click();
    search.focus();
  } else if (event.altKey && event.code === "KeyN") {
    event.preventDefault();
    newChat();
  } else if (event.key === "Escape" && !isTaken(event) && liveTurn(shown.sessionId)) {
    liveTurn(shown.sessionId).stop();
  }
}

/** Whether a key press does something else already: it closes a panel, ends the composition of a word, or empties the box of the search. */
const isTaken = ({ defaultPrevented, isComposing, target }) => defaultPrevented || isComposing || target.matches("input");

/** Say how to configure a model if the built-in one answers, or why none can. */
async function sayWhoAnswers() {
  let ready;
  try {
    ready = await api.get("/health/ready");
  } catch {
    return; // the panels report that the server can't be reached
  }
  const wanted = ready.notice && sessionStorage.getItem("recap.notice") !== "closed";
  const help = textParts("page.builtin_answers", {
    key: html`<code>OPENAI_API_KEY=sk-…</code>`,
    address: html`<code>OPENAI_BASE_URL=http://127.0.0.1:11434/v1</code>`,
    file: html`<code>.env</code>`,
  });
  const close = () => {
    sessionStorage.setItem("recap.notice", "closed");
    render(null, byId("banners"));
  };
  const notice = html`
    <div class="notice" id="notice"><span>${ready.model.builtin ? help : ready.notice}</span><button onClick=${close}>${text("page.close")}</button></div>`;
  render(wanted && notice, byId("banners"));
}
