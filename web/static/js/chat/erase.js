// Erasing one message: asked for twice, done for good.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce, button } from "../page/dom.js";
import { emit } from "../page/state.js";

const TEXT =
  "Its words are erased for good, with the facts taken from them and the versions of the summary made from them, " +
  "also those you wrote. The summary is made anew. ";
const STAYS = { user: "The reply to it stays, and may repeat it: erase that too if it does.", assistant: "Your own message stays." };

/** The button of a message of `thread`'s; `erased(id)` is called when it is gone, `failed(error)` when it is not. */
export function eraseButton(thread, message, { erased, failed }) {
  return button("Erase", async () => {
    const text = TEXT + (STAYS[message.role] ?? "");
    if (!(await confirmed("Erase this message?", text, "Erase"))) return;
    try {
      await api.del(`${thread.path}/messages/${message.id}`);
    } catch (error) {
      if (error.status !== 404) return void failed(error); // 404: it is gone already
    }
    await erased(message.id);
    announce("The message is erased");
    emit("sessions");
    emit("memory");
  }, { kind: "quiet", title: "Erase this message for good" });
}
