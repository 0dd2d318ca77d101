// Forgets facts, and on request erases the messages they came from, after a confirmation that tells the difference.

import * as api from "../page/api.js";
import { ERASES, eraseMessage } from "../chat/erase.js";
import { openDialog } from "../page/dialog.js";
import { announce, button, el } from "../page/dom.js";
import { emit } from "../page/state.js";
import { plural } from "../page/words.js";

const BATCH = 1000; // facts in one call

/** Ask what to do with the facts, and do it.  Resolves to whether they are forgotten; throws ApiError on failure. */
export async function forgetFacts(facts) {
  const sources = new Map(facts.filter((fact) => fact.source_message_id).map((fact) => [fact.source_message_id, fact.session_id]));
  const choice = await openDialog(facts.length === 1 ? "Forget this fact?" : `Forget ${plural(facts.length, "fact")}?`, (close) => [
    facts.length === 1 && el("p", {}, el("strong", {}, facts[0].text)),
    el("p", {}, "Recap will no longer use what you forget, in any chat. This can't be undone."),
    sources.size > 0 && el("p", {}, "The words it came from stay in their chat, where they can still be found. ",
      `“Erase the words too” also erases ${plural(sources.size, "message")}. ${ERASES}`),
    el("div.row.wrap.end", {},
      button("Cancel", () => close()),
      sources.size > 0 && button("Erase the words too", () => close("words"), { kind: "danger" }),
      button(facts.length === 1 ? "Forget the fact" : "Forget the facts", () => close("facts"), { kind: "primary", autofocus: true })),
  ]);
  if (!choice) return false;
  if (choice === "words") for (const [message, session] of sources) await eraseMessage(session, message);
  const ids = facts.map((fact) => fact.id);
  for (let at = 0; at < ids.length; at += BATCH) await api.post("/api/facts/forget", { ids: ids.slice(at, at + BATCH) });
  announce("Forgotten");
  emit("memory");
  return true;
}
