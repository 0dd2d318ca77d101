// Erases one message permanently, after a confirmation.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce, button } from "../page/dom.js";
import { emit } from "../page/state.js";
import { text } from "../page/texts.js";

export const ERASES = `${text("chat.erase.means")} `;
const STAYS = { user: text("chat.erase.user_stays"), assistant: text("chat.erase.assistant_stays") };

/** Erase a message of a session.  Throws ApiError. */
export async function eraseMessage(sessionId, messageId) {
  await api.del(`${api.sessionPath(sessionId)}/messages/${messageId}`).catch((error) => {
    if (error.status !== 404) throw error; // 404: it is already erased
  });
  emit("sessions", { sessionId, erased: messageId });
}

/** A button that erases a message of a session.  Calls `failed(error)` on failure. */
export function eraseButton(sessionId, message, failed) {
  return button(text("chat.erase.erase"), async () => {
    const means = ERASES + (STAYS[message.role] ?? "");
    if (!(await confirmed(text("chat.erase.title"), means, text("chat.erase.erase")))) return;
    try {
      await eraseMessage(sessionId, message.id);
    } catch (error) {
      return void failed(error);
    }
    announce(text("chat.erase.done"));
    emit("memory");
  }, { kind: "quiet", title: text("chat.erase.hint") });
}
