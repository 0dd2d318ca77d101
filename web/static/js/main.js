// Starts the page: the panels, the global keys, and the notice about the built-in model.

import { startChart } from "./chat/chart.js";
import { focusComposer } from "./chat/composer.js";
import { newChat, startConversation } from "./chat/conversation.js";
import { startSessions } from "./chat/sessions.js";
import { liveTurn } from "./chat/turns.js";
import { openManage } from "./dialogs/manage.js";
import { openSettings } from "./dialogs/settings.js";
import { startSignIn } from "./dialogs/signin.js";
import { startMemory } from "./memory/memory.js";
import * as api from "./page/api.js";
import { button, byId, el } from "./page/dom.js";
import { startPanels } from "./page/panels.js";
import { shown } from "./page/state.js";
import { text, textParts } from "./page/texts.js";
import { modelName } from "./page/words.js";

startSignIn();
await api.learnWhose();
startPanels();
startMemory();
startChart();
startSessions();
startConversation();
byId("open-manage").addEventListener("click", openManage);
byId("open-settings").addEventListener("click", openSettings);
document.addEventListener("keydown", keys);
sayWhoAnswers();
if (matchMedia("(pointer: fine)").matches) focusComposer(); // not on phones, where the keyboard would cover the page

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
  } else if (event.key === "Escape" && liveTurn(shown.sessionId)) {
    liveTurn(shown.sessionId).stop();
  }
}

/** Show the name of the model, and how to configure a real one if the built-in one answers. */
async function sayWhoAnswers() {
  let ready;
  try {
    ready = await api.get("/health/ready", {}, { user: false });
  } catch {
    return; // the panels report that the server can't be reached
  }
  byId("model").textContent = modelName(ready.model.main);
  if (!ready.notice || sessionStorage.getItem("recap.notice") === "closed") return;
  const code = (words) => el("code", {}, words);
  const banner = el("div", {},
    el("span", {}, textParts("page.builtin_answers", {
      key: code("OPENAI_API_KEY=sk-…"), address: code("OPENAI_BASE_URL=http://127.0.0.1:11434/v1"), file: code(".env"),
    })),
    button(text("page.close"), () => {
      sessionStorage.setItem("recap.notice", "closed");
      banner.remove();
    }));
  byId("banners").append(banner);
}
