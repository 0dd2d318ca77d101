// The chats of other people, and of programs that name nobody, for whoever may see all of them: folded below a person's own, and only to be read.
import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { Component, Trouble, html } from "../page/html.js";
import { emit, keep, on, person } from "../page/state.js";
import { speaker, text, when } from "../page/words.js";
import { Body } from "./message.js";
import { named } from "./session_row.js";

const SHOWN = 50;

export class OtherChats extends Component {
  state = { items: [], open: false };

  componentDidMount() {
    on("person", () => this.state.open && this.read());
  }

  load = () => api.get("/api/sessions", { user_id: undefined, except_user_id: person(), limit: SHOWN });

  toggle = ({ currentTarget: { open } }) => this.setState({ open }, open ? this.read : null);

  row = (session) => html`<li class="session" key=${`${session.user_id}/${session.space}/${session.id}`}>
      <button class="session-open" title=${named(session)} onClick=${() => this.attempt(() => openOther(session))}>
        <span class="cut">${named(session)}</span>
        <span class="when">${session.user_id ?? session.space ?? text("chat.others.program")} · ${when(session.updated_at)}</span>
      </button>
    </li>`;

  render(_, { items, open, busy, trouble }) {
    return html`<details class="others" onToggle=${this.toggle}>
        <summary>${text("chat.others.title")}</summary>
        <${Trouble} ...${trouble} />
        ${open && !busy && !items.length && html`<p class="list-note">${text("chat.others.none")}</p>`}
        <ul>${items.map(this.row)}</ul>
      </details>`;
  }
}

/** Show a chat in a dialog; from there a person's memory can be opened. */
async function openOther(session) {
  const { id, user_id, space } = session;
  const messages = await api.all(`${api.sessionPath(id)}/messages`, { user_id: user_id ?? undefined, space: space ?? undefined });
  const take = () => {
    keep("user", user_id);
    emit("person");
  };
  const article = (message) => html`<article class="message ${message.role === "user" ? "user" : "assistant"}" key=${message.id}>
      <div class="who">${speaker(message)}, ${when(message.created_at)}</div>
      <${Body} role=${message.role} words=${message.content} />
    </article>`;
  const content = (close) => html`<div>${messages.map(article)}</div>
    ${user_id && html`<div class="row end"><button onClick=${() => close(true)}>${text("chat.others.take", { person: user_id })}</button></div>`}`;
  if (await openDialog(named(session), content, { wide: true })) take();
}
