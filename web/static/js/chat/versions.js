// Steps through the versions of a message: what it said before it was edited, and the replies it got before.

import * as api from "../page/api.js";
import { button, el } from "../page/dom.js";
import { emit } from "../page/state.js";
import { text } from "../page/texts.js";

/** Buttons to the version before and after; `versions` are the ids of all.  `show(id)` shows the one that was chosen. */
export function versionSteps(sessionId, message, versions, { show, failed }) {
  const at = versions.indexOf(message.id);
  const step = (to, mark, label) =>
    button(mark, async () => {
      try {
        await api.post(`${api.sessionPath(sessionId)}/messages/${versions[to]}/restore`);
      } catch (error) {
        return void failed(error);
      }
      emit("sessions", { sessionId, by: "versions" });
      await show(versions[to]);
    }, { kind: "quiet", "aria-label": label, title: label, disabled: versions[to] === undefined });
  const place = text("chat.message.version", { number: at + 1, count: versions.length });
  return el("span.version-steps.when-free", { role: "group", "aria-label": place, title: place },
    step(at - 1, "‹", text("chat.message.version_before")), `${at + 1}/${versions.length}`,
    step(at + 1, "›", text("chat.message.version_after")));
}
