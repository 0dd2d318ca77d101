// Erases one message permanently, after a confirmation.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce, button } from "../page/dom.js";
import { emit } from "../page/state.js";

const TEXT =
  "This permanently erases the message, the facts taken from it, and the versions of the summary made from it, " +
  "including those you wrote. Recap then writes a new summary. ";
const STAYS = { user: "The reply to it stays and may repeat its words; if so, erase the reply too.", assistant: "Your own message stays." };

/** A button that erases a message of `thread`.  Calls `erased(id)` on success, `failed(error)` on failure. */
export function eraseButton(thread, message, { erased, failed }) {
  return button("Erase", async () => {
    const text = TEXT + (STAYS[message.role] ?? "");
    if (!(await confirmed("Erase this message?", text, "Erase"))) return;
    try {
      await api.del(`${thread.path}/messages/${message.id}`);
    } catch (error) {
      if (error.status !== 404) return void failed(error); // 404: it is already erased
    }
    await erased(message.id);
    announce("The message is erased");
    emit("sessions", { sessionId: thread.sessionId });
    emit("memory");
  }, { kind: "quiet", title: "Erase this message for good" });
}
