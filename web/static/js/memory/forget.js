// Forgets facts, and on request the messages they came from, after a confirmation that tells the difference; and erases one message permanently.
import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { announce } from "../page/dom.js";
import { html } from "../page/html.js";
import { emit } from "../page/state.js";
import { text } from "../page/words.js";

const BATCH = 1000; // facts in one call

/** Ask what to do with the facts, and do it.  Resolves to whether they are forgotten; throws ApiError on failure. */
export async function forgetFacts(facts) {
  const sourced = facts.filter((fact) => fact.source_message_id);
  const sources = new Map(sourced.map((fact) => [fact.source_message_id, fact.session_id]));
  const one = facts.length === 1;
  const content = (close) => html`
    ${one && html`<p><strong>${facts[0].text}</strong></p>`}
    <p>${text("memory.forget.means")}</p>
    ${sources.size > 0 && html`<p>${text("memory.forget.words_stay")} ${text("memory.forget.erases", { count: sources.size })}</p>`}
    <div class="row wrap end">
      <button onClick=${() => close()}>${text("page.cancel")}</button>
      ${sources.size > 0 && html`<button class="danger" onClick=${() => close("words")}>${text("memory.forget.erase_too")}</button>`}
      <button class="primary" autofocus onClick=${() => close("facts")}>${one ? text("memory.forget.fact") : text("memory.forget.facts")}</button>
    </div>`;
  const choice = await openDialog(text("memory.forget.title", { count: facts.length }), content);
  if (!choice) return false;
  if (choice === "words") for (const [message, session] of sources) await eraseMessage(session, message);
  const ids = facts.map((fact) => fact.id);
  while (ids.length) await api.post("/api/facts/forget", { ids: ids.splice(0, BATCH) });
  announce(text("memory.forgotten"));
  emit("memory");
  return true;
}

const STAYS = { user: text("chat.erase.user_stays"), assistant: text("chat.erase.assistant_stays") };

/** Erase a message of a session.  Throws ApiError. */
async function eraseMessage(sessionId, messageId) {
  await api.del(`${api.sessionPath(sessionId)}/messages/${messageId}`).catch(api.unlessGone);
  emit("sessions", { sessionId, erased: messageId });
}

/** Erase a message after a confirmation. */
export async function askToErase({ id, session_id: sessionId, role }) {
  const means = `${text("chat.erase.means")} ${STAYS[role] ?? ""}`;
  if (!(await confirmed(text("chat.erase.title"), means, text("chat.message.erase")))) return;
  await eraseMessage(sessionId, id);
  announce(text("chat.erase.done"));
  emit("memory");
}
