// A list of facts: one line each, which opens to its source and importance, and actions to edit, forget and pin them.
//
// The list is one tab stop. The arrow keys move, Enter opens, P pins, E edits, Delete forgets, and Tab leads to the buttons of the current fact.
import * as api from "../page/api.js";
import { jumpTo } from "../chat/conversation.js";
import { announce } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { CATEGORIES, FactForm } from "./fact_form.js";
import { FactHistory } from "./fact_history.js";
import { forgetFacts } from "./forget.js";
import { Row, RowButton, Rows } from "../page/rows.js";
import { text, when } from "../page/words.js";

/** The facts in the order of prompts: pinned first, then by score. */
export function ranked(facts) {
  return [...facts].sort((a, b) => b.pinned - a.pinned || (b.score?.total ?? 0) - (a.score?.total ?? 0) || b.id - a.id);
}

/**
 * `changed(fact)` is called with a fact after a change was stored. `sessionTitle(id)` returns the title of a fact's chat, if it is to be shown.
 * `before(fact)` returns what stands before each fact, such as a check box. `leave()` is called before the page shows the source message of a fact.
 */
export class FactList extends Component {
  state = { editing: {} }; // the facts with an open form, by id

  edit = (id, fact) => this.setState(({ editing }) => ({ editing: { ...editing, [id]: fact } }));

  render({ label, facts, ...rest }, { editing }) {
    const listed = new Set(facts.map((fact) => fact.id));
    // A form stays while its fact is not listed, such as during another chat.
    const unlisted = Object.values(editing).filter((fact) => fact && !listed.has(fact.id));
    return html`<${Rows} hidden=${!facts.length} hint=${text("memory.fact.keys")}>
        <ul aria-label=${label}>
          ${[...facts, ...unlisted].map(
            (fact) => html`<${Fact}
                key=${fact.id}
                fact=${editing[fact.id] ?? fact}
                editing=${Boolean(editing[fact.id])}
                edit=${this.edit}
                hidden=${!listed.has(fact.id)}
                ...${rest}
              />`,
          )}
        </ul>
      <//>`;
  }
}

class Fact extends Component {
  row = createRef();
  state = { open: false, past: false };
  open = () => this.setState(({ open }) => ({ open: !open }));
  edit = () => this.props.edit(this.props.fact.id, this.props.fact);

  pin = () =>
    this.attempt(async () => {
      const { pinned } = this.props.fact;
      await this.change({ pinned: !pinned });
      announce(text(pinned ? "memory.unpinned" : "memory.pinned"));
      this.row.current.scrollIntoView({ block: "nearest" });
    });

  history = () => this.setState(({ past }) => ({ past: !past }));
  forget = () => this.attempt(() => forgetFacts([this.props.fact]));
  close = () => this.props.edit(this.props.fact.id, null);

  save = async (changes) => {
    if (Object.keys(changes).length) await this.change(changes);
    this.close();
  };

  async change(changes) {
    this.props.changed(await api.patch(`/api/facts/${this.props.fact.id}`, changes));
  }

  render({ fact, editing, hidden, before, sessionTitle, leave }, { open, past, trouble }) {
    const { text: words, pinned } = fact;
    const keys = { Enter: this.open, p: this.pin, e: this.edit, Delete: this.forget, Backspace: this.forget };
    const about = { place: this.row, "data-fact": fact.id, hidden };
    const looks = `fact ${pinned ? "pinned" : ""} ${open ? "open" : ""}`;
    if (editing)
      return html`<${Row} class=${looks} keys=${keys} ...${about}><${FactForm} fact=${fact} save=${this.save} cancel=${this.close} /><//>`;
    return html`<${Row} class=${looks} keys=${keys} aria-keyshortcuts="P E Delete" ...${about}>
        ${before?.(fact)}
        <button class="fact-text" aria-expanded=${String(open)} title=${open ? null : words} onClick=${this.open}>${words}</button>
        <div class="row-actions">
          <${RowButton} name="edit" of=${words} onClick=${this.edit} />
          <${RowButton} name="forget" of=${words} onClick=${this.forget} />
          <${RowButton} name="pin" of=${words} onClick=${this.pin} aria-pressed=${String(pinned)} />
        </div>
        ${open &&
        html`<div class="fact-body">
          <${Source} fact=${fact} title=${fact.session_id && sessionTitle?.(fact.session_id)} leave=${leave} />
          <div class="fact-foot">
            <${Dots} importance=${fact.importance} />
            ${fact.category !== "other" && html`<span>${CATEGORIES[fact.category] ?? fact.category}</span>`}
            ${fact.scope === "user" && html`<span>${text("memory.fact.all_chats")}</span>`}
            <button class="link" title=${text("memory.history.title")} aria-expanded=${String(past)} onClick=${this.history}>
              ${text("memory.fact.since", { time: when(fact.valid_from) })}
            </button>
          </div>
          ${past && html`<${FactHistory} key=${JSON.stringify(fact)} fact=${fact} />`}
        </div>`}
        <${Trouble} ...${trouble} />
      <//>`;
  }
}

/** The quote that something rests on, with a link to its message.  What the person added has none. */
export function Source({ fact: { session_id: session, source_message_id: message, quote }, title, leave }) {
  const words = quote && text("memory.fact.quote", { words: quote });
  const show = () => {
    leave?.();
    jumpTo(session, message);
  };
  return html`<div class="fact-source">
      ${!message
        ? html`<span>${words || text("memory.fact.added_by_you")}</span>`
        : html`
            <button class="link quote cut" title=${text("memory.fact.show_message")} onClick=${show}>${words || text("memory.fact.show_message")}</button>
          `}
      ${title && html`<span class="fact-chat cut">${title}</span>`}
    </div>`;
}

const Dots = ({ importance }) => html`
  <span class="importance" role="img" aria-label=${text("memory.fact.importance", { importance })}>${"●".repeat(importance)}${"○".repeat(5 - importance)}</span>
`;
