// A line of a list in memory, which a person can correct in its place or forget.
import { confirmed } from "../page/dialog.js";
import { announce } from "../page/dom.js";
import { Component, Trouble, html } from "../page/html.js";
import { Row, RowButton } from "../page/rows.js";
import { text } from "../page/words.js";
import { EditForm, oneLine } from "./edit_form.js";

/**
 * `save(words)` stores other words for the `line`, or removes it if they are null; then `changed` gets what it resolves to. `means` tells what it is
 * to forget the line. `edit(open)` sets `editing`; without it there is no form. The children stand below the line, which may be `manyLines`.
 */
export class Item extends Component {
  edit = () => this.props.edit(true);
  close = () => this.props.edit?.(false);

  async store(words) {
    const stored = await this.props.save(words);
    this.close();
    this.props.changed(stored);
  }

  save = async ({ item }) => {
    const next = this.props.manyLines ? item.trim() : oneLine(item);
    if (next === this.props.line) this.close();
    else await (next ? this.store(next) : this.forget());
  };

  forget = async () => {
    const [title, action] = [text("memory.item.forget_title"), text("memory.item.forget")];
    if (!(await confirmed(title, this.props.means, action))) return;
    await this.attempt(async () => {
      await this.store(null);
      announce(text("memory.forgotten"));
    });
  };

  render({ line, manyLines, edit, editing, children }, { trouble }) {
    const forget = line && this.forget; // an empty line only invites to write one
    const keys = { e: edit && this.edit, Delete: forget, Backspace: forget };
    return html`<${Row} class="item" keys=${keys} aria-keyshortcuts=${[edit && "E", forget && "Delete"].filter(Boolean).join(" ")}>
        ${editing
          ? html`<${EditForm} class="item-form" manyLines=${manyLines} save=${this.save} cancel=${this.close}>
                <textarea name="item" rows="2" defaultValue=${line} aria-label=${text("memory.item.line")} />
              <//>`
          : html`<span class="grow ${manyLines ? "typed" : ""}">${line}${children}</span>
              <span class="row-actions">
                ${edit && html`<${RowButton} name="edit" of=${line || children} onClick=${this.edit} />`}
                ${forget && html`<${RowButton} name="forget" of=${line} onClick=${forget} />`}
              </span>
            `}
        <${Trouble} ...${trouble} />
      <//>`;
  }
}

/** Items under a title. */
export const Items = ({ title, children }) => html`<section class="summary-section"><h4>${title}</h4><ul aria-label=${title}>${children}</ul></section>`;
