// Forgets facts, and on request erases the messages they came from, after a confirmation that tells the difference.

import * as api from "../page/api.js";
import { eraseMessage } from "../chat/erase.js";
import { openDialog } from "../page/dialog.js";
import { announce, button, el } from "../page/dom.js";
import { emit } from "../page/state.js";
import { text } from "../page/texts.js";

const BATCH = 1000; // facts in one call

/** Ask what to do with the facts, and do it.  Resolves to whether they are forgotten; throws ApiError on failure. */
export async function forgetFacts(facts) {
  const sourced = facts.filter((fact) => fact.source_message_id);
  const sources = new Map(sourced.map((fact) => [fact.source_message_id, fact.session_id]));
  const one = facts.length === 1;
  const choice = await openDialog(text("memory.forget.title", { count: facts.length }), (close) => [
    one && el("p", {}, el("strong", {}, facts[0].text)),
    el("p", {}, text("memory.forget.means")),
    sources.size > 0 &&
      el("p", {}, text("memory.forget.words_stay"), " ", text("memory.forget.erases", { count: sources.size })),
    el("div.row.wrap.end", {},
      button(text("page.cancel"), () => close()),
      sources.size > 0 && button(text("memory.forget.erase_too"), () => close("words"), { kind: "danger" }),
      button(text(one ? "memory.forget.fact" : "memory.forget.facts"), () => close("facts"), {
        kind: "primary",
        autofocus: true,
      })),
  ]);
  if (!choice) return false;
  if (choice === "words") for (const [message, session] of sources) await eraseMessage(session, message);
  const ids = facts.map((fact) => fact.id);
  for (let at = 0; at < ids.length; at += BATCH) await api.post("/api/facts/forget", { ids: ids.slice(at, at + BATCH) });
  announce(text("memory.forgotten"));
  emit("memory");
  return true;
}
