// What the list shows of a chat, its title and a menu to rename, pin, archive, select and delete it; and what a search found.
import * as api from "../page/api.js";
import { isEnter } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { Menu } from "../page/menu.js";
import { emit, holder } from "../page/state.js";
import { speaker, text, when } from "../page/words.js";

export const named = (session) => session.title || text("page.untitled_chat");

/** `acts` are what can be done with chats.  `selecting`: whether it shows its box instead of its menu. */
export class SessionRow extends Component {
  opener = createRef();
  state = { renaming: false };
  rename = () => this.setState({ renaming: true });
  renamed = () => this.setState({ renaming: false }, () => this.opener.current.focus());

  render({ session, time, current, selecting, selected, open, acts }, { renaming }) {
    const { id, pinned, archived, busy } = session;
    const title = named(session);
    const about = (action) => ({ "aria-label": text("chat.sessions.of_chat", { action, title }) });
    if (renaming) return html`<li class="session"><${Rename} session=${session} done=${this.renamed} /></li>`;
    const items = [
      [text("chat.sessions.rename"), this.rename],
      [text(pinned ? "chat.sessions.unpin" : "chat.sessions.pin"), () => acts.pin(session)],
      [text(archived ? "chat.sessions.restore" : "chat.sessions.archive"), () => acts.archive([session])],
      [text("chat.sessions.select"), () => acts.select(id, true)],
      [text("page.delete"), () => acts.erase([session])],
    ];
    const tick = ({ target }) => acts.select(id, target.checked);
    const opens = { class: "session-open", title, "aria-current": current ? "true" : null, onClick: () => open(id) };
    return html`<li class="session">
        <button data-row=${id} data-close-panel ...${opens} ref=${this.opener}>
          <span class="cut">${title}</span>
          <span class="when">${busy ? text("chat.sessions.replying", { time }) : time}</span>
        </button>
        ${selecting
          ? html`<label class="check"><input type="checkbox" ...${about(text("chat.sessions.select"))} checked=${selected} onChange=${tick} /></label>`
          : holder.may.change && html`<${Menu} label=${text("chat.sessions.more", { title })} items=${items} />`}
      </li>`;
  }
}

/** The box for the title.  Enter and leaving it save, Escape does not. */
class Rename extends Component {
  box = createRef();

  componentDidMount() {
    this.box.current.select();
  }

  save = async () => {
    const { session } = this.props;
    if (this.over) return; // it also loses the focus when it goes
    this.over = true;
    const title = this.box.current.value.trim();
    await this.attempt(async () => {
      if (title && title !== session.title) {
        await api.patch(api.sessionPath(session.id), { title });
        session.title = title; // until the list is read again
        emit("sessions", { sessionId: session.id });
      }
      this.props.done();
    });
    this.over = false; // it may have failed
  };

  keys = (event) => {
    event.stopPropagation();
    if (isEnter(event)) this.save();
    if (event.key !== "Escape") return;
    this.over = true;
    this.props.done();
  };

  render({ session }, { trouble }) {
    return html`<input
        type="text"
        maxlength="200"
        aria-label=${text("chat.sessions.name")}
        defaultValue=${session.title}
        ref=${this.box}
        onKeyDown=${this.keys}
        onBlur=${this.save}
      />
      <${Trouble} ...${trouble} />`;
  }
}

const BEFORE = 40; // characters shown before the first word that was found
const LETTER = "[\\p{sc=Latn}\\p{sc=Cyrl}\\p{sc=Grek}\\p{N}]"; // of scripts that part words by spaces

/** A message that a search found: its chat, its time, and its text from a little before the first word that was found. */
export const Hit = ({ hit, open }) => html`<button data-row class="hit" onClick=${open}>
    <span class="hit-title cut">${named(hit)}</span>
    <span class="when">${hit.role && text("chat.message.label", { speaker: speaker(hit), time: when(hit.created_at) })}</span>
    <span class="hit-text">${marked(hit)}</span>
    ${hit.corrections.map((fact) => html`<span class="hit-text corrected">${text("chat.sessions.holds_now", { text: fact.text })}</span>`)}
  </button>`;

function marked({ text: statement, content: said, highlights }) {
  const content = statement ?? said;
  if (!highlights.length) return content;
  const longest = [...highlights].sort((a, b) => b.length - a.length);
  const words = longest.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|");
  const parts = content.split(new RegExp(`(?<!${LETTER})(${words})(?!${LETTER})`, "u"));
  const begins = parts[0].length > BEFORE ? `…${parts[0].slice(-BEFORE)}` : parts[0];
  return [begins, ...parts.slice(1).map((part, at) => (at % 2 ? part : html`<mark>${part}</mark>`))];
}
