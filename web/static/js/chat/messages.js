// The messages of a chat as they are drawn, with the turn in progress below them, or what is left of one that failed.
import { Edge } from "../page/edge.js";
import { Trouble, html } from "../page/html.js";
import { dayKey, dayName, text } from "../page/words.js";
import { Editor } from "./editor.js";
import { Empty } from "./empty.js";
import { Body, Message } from "./message.js";
import { Writing } from "./writing.js";

/**
 * `turn` is the one in progress, if any; `part` is what is known of a reply that broke off; `failure` is an error with
 * what to do again; `editing` is the id of the message being edited; `facts` are by the message they were taken from.
 * `acts` are what the person can do, the same functions each time: see conversation.js.
 */
export function Messages({ thread, turn, part, failure, editing, facts, temporary, acts }) {
  const { items, older, newer, turns, versions, unanswered } = thread;
  const begun = thread.holds(turn?.told.user_message_id);
  const replaced = turn?.replaces && !begun; // it and what follows are no longer shown
  const shown = replaced ? items.slice(0, Math.max(0, items.findIndex(({ id }) => id === turn.replaces))) : items;
  const last = items.at(-1);
  const asked = newer === null && last?.role === "assistant" && items.findLast(({ role }) => role === "user");
  const day = (message) => message && dayKey(message.created_at);
  const why = failure?.message ?? text(part ? "chat.thread.broke_off" : "chat.thread.unanswered");
  if (!shown.length && !turn && !failure) return html`<${Empty} temporary=${temporary} write=${acts.write} />`;
  return html`
    ${older && html`<${Edge} key=${older} more=${acts.loadOlder}>${text("chat.thread.earlier")}<//>`}
    ${shown.flatMap((message, at) => {
      const { id, created_at: time } = message;
      const begins = day(message) !== day(shown[at - 1]);
      const reply = turns.get(id)?.message_id === id && turns.get(id);
      return [
        begins && html`<div key=${day(message)} class="day">${dayName(time)}</div>`,
        id === editing
          ? html`<${Editor} key=${id} message=${message} send=${acts.replace} leave=${acts.leave} />`
          : html`<${Message}
                key=${id}
                message=${message}
                turn=${turns.get(id)}
                facts=${reply && facts.get(reply.user_message_id)}
                versions=${versions.get(id)}
                asked=${message === last && asked}
                temporary=${temporary}
                acts=${acts}
              />`,
      ];
    })}
    ${newer &&
    html`<${Edge} key=${newer} more=${acts.loadNewer}>${text("chat.thread.later")}<//>
      <div class="to-latest"><button class="primary" onClick=${acts.toNewest}>${text("chat.thread.to_newest")}</button></div>
    `}
    ${turn &&
    html`
      ${!turn.resumes && !begun && html`<${Unstored} role="user" words=${turn.text} />`}
      <${Writing} key=${turn.key} turn=${turn} progress=${acts.progress} />
    `}
    ${!turn && part && html`<${Unstored} role="assistant" words=${part} />`}
    ${!turn && ((unanswered && !unanswered.refused) || failure?.again) &&
    html`<${Trouble}
        message=${unanswered ? text("chat.thread.kept", { why }) : why}
        told=${failure?.told}
        again=${unanswered ? () => acts.resume(unanswered) : failure.again}
      />
    `}
  `;
}

/** Words that are no stored message: one on its way, or the part of a reply. */
const Unstored = ({ role, words }) => html`
  <article class="message ${role}" aria-label=${role === "user" ? text("chat.message.you") : text("chat.message.broken_off")}>
    <${Body} role=${role} words=${words} />
  </article>`;
