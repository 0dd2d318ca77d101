// The chats that belong together with the one on display, folded under its title; they are read when unfolded.
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { on, shown } from "../page/state.js";
import { text } from "../page/words.js";

const LIMIT = 5;

/** `open(session)` shows a chat. */
export class Related extends Component {
  state = { of: null, items: null }; // of: the id of the chat on display, if it is stored

  componentDidMount() {
    const follow = () => {
      const of = shown.temporary ? null : shown.sessionId;
      if (of !== this.state.of) this.setState({ of, items: null, unfolded: false, trouble: {} });
    };
    on("session", follow);
    on("turn", follow);
  }

  async load(isLast) {
    const { of } = this.state;
    if (!of) return;
    const { items } = await api.get(`${api.sessionPath(of)}/related`, { limit: LIMIT });
    if (isLast() && of === this.state.of) this.setState({ items });
  }

  unfold = ({ currentTarget: { open: unfolded } }) => {
    if (unfolded === Boolean(this.state.unfolded)) return;
    this.setState({ unfolded });
    if (unfolded) this.read();
  };

  render({ open }, { of, items, unfolded, trouble }) {
    return html`<details class="related" hidden=${!of} open=${unfolded} onToggle=${this.unfold}>
        <summary class="cut muted">${text("chat.related.title")}</summary>
        <${Trouble} ...${trouble} />
        ${items?.length === 0 && html`<p class="muted">${text("chat.related.none")}</p>`}
        <ul aria-label=${text("chat.related.title")} hidden=${!items?.length}>
          ${items?.map((item) => html`<li key=${item.session_id}>
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
