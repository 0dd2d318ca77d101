// The chats that belong together with the one on display, folded under its title; without any there is nothing.
import * as api from "../page/api.js";
import { Component, html } from "../page/html.js";
import { on, shown } from "../page/state.js";
import { text } from "../page/words.js";

const LIMIT = 5;

/** `open(session)` shows a chat. */
export class Related extends Component {
  state = { of: null, items: [] }; // of: the id of the chat on display

  componentDidMount() {
    on("session", this.read);
    on("summarised", ({ sessionId }) => sessionId === shown.sessionId && this.read());
  }

  /** Whether the chat is stored yet, and whether it can be read, the messages tell. */
  async load() {
    const of = shown.temporary ? null : shown.sessionId;
    if (of !== this.state.of) this.setState({ of, items: [] });
    const found = of && (await api.get(`${api.sessionPath(of)}/related`, { limit: LIMIT }).catch(() => null));
    return { items: found?.items ?? [] };
  }

  render({ open }, { of, items }) {
    return html`<details class="strip" key=${of} hidden=${!items.length}>
        <summary class="cut muted">${text("chat.related.title")}</summary>
        <ul aria-label=${text("chat.related.title")}>
          ${items.map((item) => html`<li key=${item.session_id}>
              <button class="link" onClick=${() => open(item.session_id)}>${item.title || text("chat.why.a_chat")}</button>
              <span class="muted small"> ${reasonOf(item.why)}</span>
            </li>
          `)}
        </ul>
      </details>`;
  }
}

function reasonOf({ entities, summary }) {
  const reasons = [
    entities.length && text("chat.related.entities", { names: entities.join(", ") }),
    summary !== null && text("chat.related.summary"),
  ];
  return reasons.filter(Boolean).join("; ");
}
