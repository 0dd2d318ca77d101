// Erases one message permanently, after a confirmation.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce, button } from "../page/dom.js";
import { emit } from "../page/state.js";

export const ERASES =
  "This permanently erases the message, the facts taken from it, and the versions of the summary made from it, " +
  "including those you wrote. Recap then writes a new summary. ";
const STAYS = { user: "The reply to it stays and may repeat its words; if so, erase the reply too.", assistant: "Your own message stays." };

/** Erase a message of a session.  Throws ApiError. */
export async function eraseMessage(sessionId, messageId) {
  await api.del(`${api.sessionPath(sessionId)}/messages/${messageId}`).catch((error) => {
    if (error.status !== 404) throw error; // 404: it is already erased
  });
  emit("sessions", { sessionId, erased: messageId });
}

/** A button that erases a message of a session.  Calls `failed(error)` on failure. */
export function eraseButton(sessionId, message, failed) {
  return button("Erase", async () => {
    const text = ERASES + (STAYS[message.role] ?? "");
    if (!(await confirmed("Erase this message?", text, "Erase"))) return;
    try {
      await eraseMessage(sessionId, message.id);
    } catch (error) {
      return void failed(error);
    }
    announce("The message is erased");
    emit("memory");
  }, { kind: "quiet", title: "Erase this message for good" });
}
