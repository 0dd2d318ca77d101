// A chat in the list: its title, and actions to rename, pin, delete and select it.

import * as api from "../page/api.js";
import { isEnter } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { Icon } from "../page/rows.js";
import { emit } from "../page/state.js";
import { text } from "../page/words.js";

export const named = (session) => session.title || text("page.untitled_chat");

export class SessionRow extends Component {
  opener = createRef();
  state = { renaming: false };

  rename = () => this.setState({ renaming: true });
  renamed = () => this.setState({ renaming: false }, () => this.opener.current.focus());

  render({ session, time, current, selected, open, select, pin, erase }, { renaming }) {
    const { id, pinned, busy } = session;
    const title = named(session);
    const about = (action) => ({ title: action, "aria-label": text("chat.sessions.of_chat", { action, title }) });
    const tool = (icon, action, act) => html`
      <button class="icon" ...${about(action)} onClick=${act}><${Icon} name=${icon} /></button>
    `;
    const box = { ...about(text("chat.sessions.select")), onChange: ({ target }) => select(id, target.checked) };
    const opens = { class: "session-open", title, "aria-current": current ? "true" : null, onClick: () => open(id) };
    if (renaming) {
      return html`<li class="session"><${Rename} session=${session} done=${this.renamed} /></li>`;
    }
    return html`
      <li class="session">
        <button data-row=${id} data-close-panel ...${opens} ref=${this.opener}>
          <span class="cut">${title}</span>
          <span class="when">${busy ? text("chat.sessions.replying", { time }) : time}</span>
        </button>
        <span class="session-tools">
          ${tool("edit", text("chat.sessions.rename"), this.rename)}
          ${tool("pin", text(pinned ? "chat.sessions.unpin" : "chat.sessions.pin"), () => pin(session))}
          ${tool("forget", text("page.delete"), () => erase([session]))}
        </span>
        <label class="check"><input type="checkbox" ...${box} checked=${selected} /></label>
      </li>
    `;
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
    return html`
      <input
        type="text"
        maxlength="200"
        aria-label=${text("chat.sessions.name")}
        defaultValue=${session.title}
        ref=${this.box}
        onKeyDown=${this.keys}
        onBlur=${this.save}
      />
      <${Trouble} ...${trouble} />
    `;
  }
}
