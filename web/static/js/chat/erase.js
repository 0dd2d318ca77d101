// Erases one message permanently.
import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce } from "../page/dom.js";
import { emit } from "../page/state.js";
import { text } from "../page/words.js";

const STAYS = { user: text("chat.erase.user_stays"), assistant: text("chat.erase.assistant_stays") };

/** Erase a message of a session.  Throws ApiError. */
export async function eraseMessage(sessionId, messageId) {
  await api.del(`${api.sessionPath(sessionId)}/messages/${messageId}`).catch(api.unlessGone);
  emit("sessions", { sessionId, erased: messageId });
}

/** The same after a confirmation. */
export async function askToErase({ id, session_id: sessionId, role }) {
  const means = `${text("chat.erase.means")} ${STAYS[role] ?? ""}`;
  if (!(await confirmed(text("chat.erase.title"), means, text("chat.message.erase")))) return;
  await eraseMessage(sessionId, id);
  announce(text("chat.erase.done"));
  emit("memory");
}
