// The messages of a chat as they are drawn, with the turn in progress below them, or what is left of one that failed.
import { EditForm } from "../memory/edit_form.js";
import { PHONE } from "../page/dom.js";
import { Component, Filled, Trouble, html } from "../page/html.js";
import { render } from "../page/markdown.js";
import { Edge } from "../page/rows.js";
import { dayKey, dayName, text } from "../page/words.js";
import { filesOf, wordsOf } from "./attachments.js";
import { tooMuch, typed } from "./composer.js";
import { Body, Message, Thought } from "./message.js";
import { keepEnd } from "./scrolling.js";

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

const STEPS = ["talk", "watch", "back"];
const TRIES = [text("chat.empty.tries.name"), text("chat.empty.tries.work"), text("chat.empty.tries.ask")];
const step = (name) => html`<li><span><strong>${text(`chat.empty.steps.${name}`)}</strong> ${text(`chat.empty.how.${name}`)}</span></li>`;

/** What a chat shows before its first message.  `write(text)` puts an example into the message box. */
function Empty({ temporary, write }) {
  const [title, ...parts] = temporary
    ? ["chat.empty.temporary_title", html`<p>${text("chat.empty.temporary_how")}</p>`]
    : [
        "chat.empty.title",
        html`<ol>${STEPS.map(step)}</ol>`,
        html`<div class="row wrap">
          ${TRIES.map((words) => html`<button onClick=${() => write(words)}>${words}</button>`)}
        </div>`,
      ];
  return html`<section class="empty"><h2>${text(title)}</h2>${parts}</section>`;
}

/** The form to edit a message of the person. */
function Editor({ message, send, leave }) {
  const save = async ({ words }) => {
    const changed = typed(words);
    if (tooMuch(changed)) throw new Error(tooMuch(changed));
    if (changed) send(message, changed);
  };
  return html`<article class="message user" aria-label=${text("chat.message.editing")}>
      <${EditForm} class="edit" action=${text("page.send")} manyLines=${PHONE} save=${save} cancel=${leave}>
        <textarea name="words" rows="4" defaultValue=${wordsOf(message)} aria-label=${text("chat.message.edited")} />
        <p class="muted small">${text("chat.message.edit_means")} ${!filesOf(message) && text("chat.attach.not_again")}</p>
      <//>
    </article>`;
}

/** The reply in progress: its text so far, and what Recap is doing.  `turn` tells when it has changed, also `progress(turn)`.  Its text is drawn at most once a frame. */
class Writing extends Component {
  componentDidMount() {
    const { turn, progress } = this.props;
    turn.changed = () => {
      progress(turn);
      this.due ||= requestAnimationFrame(this.draw);
    };
    progress(turn);
  }

  draw = () => {
    this.due = 0;
    this.forceUpdate(keepEnd);
  };

  componentWillUnmount() {
    this.props.turn.changed = () => {};
    cancelAnimationFrame(this.due);
  }

  render({ turn }) {
    const { reply, thought, heard, stopping } = turn;
    return html`<article class="message assistant" aria-label=${text("chat.message.writing")} aria-busy="true">
        ${thought && html`<${Thought} thought=${thought} />`} ${reply && html`<${Filled} class="body md" of=${reply} make=${render} />`}
        <div class="body muted dots" hidden=${Boolean(reply) && heard && !stopping}>${doing(turn)}</div>
      </article>`;
  }
}

function doing({ lost, stopping, heard, reply, told: { memory } }) {
  if (lost) return text("chat.message.lost");
  if (stopping) return text("chat.message.stopping");
  if (!heard) return reply ? text("chat.message.waiting_for_rest") : text("chat.message.waiting_for_reply");
  if (!memory) return text("chat.message.looking_back");
  const found = memory.excerpts.length;
  return found ? text("chat.message.found", { count: found }) : text("chat.message.replying");
}
