// The summary of the chat on display: its sections, its state, and forms to correct it.
//
// Guarantee: typed text is never overwritten, neither by a newer version nor while another chat is shown.  A correction
// of one item is applied to the newest version.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { EditForm, oneLine } from "./edit_form.js";
import { Row, RowButton, Rows } from "../page/rows.js";
import { EMPTY, SECTIONS, linesOf, partsOf, problemWith, replaced } from "./sections.js";
import { Part } from "./part.js";
import { SummaryForm } from "./summary_form.js";
import { text, when } from "../page/words.js";

const AUTHORS = { person: text("memory.summary.by_you"), rollback: text("memory.summary.restored") };

/**
 * The summary of one chat; hidden while another is shown, so that forms stay open.  `changed(summary)` is called with
 * it after the person changed it, `refresh()` to request an update.  `summary` is null if there is none, or before it
 * is `known`.
 */
export class Summary extends Component {
  state = { whole: false, editing: new Set() }; // open forms: for all of it, and for lines, as "section/line"
  editButton = createRef();

  setWhole = (whole) => this.setState({ whole }, () => whole || this.editButton.current.focus());

  setEditing = (key, open) => {
    const { editing } = this.state;
    this.setState({ editing: open ? editing.union(new Set([key])) : editing.difference(new Set([key])) });
  };

  saved = (summary) => {
    this.setWhole(false);
    this.props.changed(summary);
    announce(text("memory.summary.saved", { version: summary.latest.version }));
  };

  /** Apply `change` to the newest sections and store the result.  Passes on errors of `change`. */
  amend = async (change) => {
    const path = api.summaryPath(this.props.sessionId);
    const { latest } = await api.get(path);
    const sections = change(latest.sections);
    const problem = problemWith(sections);
    if (problem) throw new Error(problem);
    return api.put(path, { sections, expected_version: latest.version }).catch((error) => {
      if (error.status === 409) return this.amend(change); // there is a newer version by now
      throw error;
    });
  };

  compare = async () => {
    const { sessionId, summary, changed } = this.props;
    const { openVersions } = await import("./versions.js");
    const path = api.summaryPath(sessionId);
    const parts = ({ sections }) => partsOf(sections);
    openVersions({ title: text("memory.summary.versions_of"), path, parts, used: summary.head_version, changed });
  };

  render({ hidden, temporary, summary, known, refresh }, { whole }) {
    return html`
      <${Part} title=${text("memory.summary.title")} tools=${summary && !whole && this.tools()} hidden=${hidden}>
        <p class="memory-about"><${Standing} ...${{ temporary, known, summary, refresh }} /></p>
        <${Trouble} ...${problemOf(summary)} again=${refresh} />
        <div class="summary-body">
          ${whole &&
          html`<${SummaryForm} summary=${summary} cancel=${() => this.setWhole(false)} saved=${this.saved} />`}
          ${this.sections(summary?.latest?.sections ?? EMPTY)}
        </div>
      <//>
    `;
  }

  tools() {
    const edit = { "aria-label": text("memory.summary.edit"), onClick: () => this.setWhole(true) };
    const versions = { "aria-label": text("memory.summary.versions_of"), onClick: this.compare };
    return html`
      <button class="quiet" ref=${this.editButton} ...${edit}>${text("memory.edit")}</button>
      ${this.props.summary.latest &&
      html`<button class="quiet" ...${versions}>${text("memory.summary.versions")}</button>`}
    `;
  }

  sections(sections) {
    const { whole, editing } = this.state;
    const parts = SECTIONS.map(([name, title]) => {
      const edited = [...editing].filter((key) => key.startsWith(`${name}/`)).map((key) => key.slice(name.length + 1));
      return { name, title, lines: new Set([...linesOf(sections, name), ...edited]) }; // a form outlives its line
    });
    return html`
      <${Rows} hidden=${whole} hint=${text("memory.summary.keys")}>
        ${parts.map(
          ({ name, title, lines }) =>
            lines.size > 0 &&
            html`
              <div key=${name} class="summary-section">
                <h4>${title}</h4>
                <ul aria-label=${title}>
                  ${[...lines].map((line) => {
                    const key = `${name}/${line}`;
                    const edit = (open) => this.setEditing(key, open);
                    const its = { section: name, line, edit, editing: editing.has(key) };
                    return html`<${Item} key=${key} ...${its} amend=${this.amend} changed=${this.props.changed} />`;
                  })}
                </ul>
              </div>
            `,
        )}
      <//>
    `;
  }
}

class Item extends Component {
  edit = () => this.props.edit(true);

  close = () => this.props.edit(false);

  save = async ({ item }) => {
    const { section, line, amend, changed } = this.props;
    const next = oneLine(item);
    if (next === line) return this.close();
    const summary = await amend((sections) => {
      const changes = replaced(sections, section, line, next || null);
      if (changes) return changes;
      throw new Error(text("memory.summary.item_gone"));
    });
    this.close();
    changed(summary);
  };

  forget = async () => {
    const { section, line, amend, changed } = this.props;
    const means = text("memory.summary.forget_item_means", { line });
    if (!(await confirmed(text("memory.summary.forget_item"), means, text("memory.summary.forget")))) return;
    await this.attempt(async () => {
      changed(await amend((sections) => replaced(sections, section, line, null) ?? sections));
      announce(text("memory.forgotten"));
    });
  };

  render({ line, editing }, { trouble }) {
    const keys = { e: this.edit, Delete: this.forget, Backspace: this.forget };
    return html`
      <${Row} class="summary-item" keys=${keys} aria-keyshortcuts="E Delete">
        ${editing
          ? html`
              <${EditForm} class="item-form" save=${this.save} cancel=${this.close}>
                <textarea name="item" rows="2" defaultValue=${line} aria-label=${text("memory.summary.item")} />
              <//>
            `
          : html`
              <span class="grow">${line}</span>
              <span class="row-actions">
                <${RowButton} name="edit" of=${line} onClick=${this.edit} />
                <${RowButton} name="forget" of=${line} onClick=${this.forget} />
              </span>
            `}
        <${Trouble} ...${trouble} />
      <//>
    `;
  }
}

/** The line under the heading: the version of the summary and its state. */
function Standing({ temporary, known, summary, refresh }) {
  if (temporary) return text("memory.summary.not_kept");
  if (!known) return null;
  const { latest, state, error, job_id: job, message_count: said } = summary ?? {};
  const { version, created_at: made, author, through = 0 } = latest ?? {};
  const parts = latest ? [text("memory.summary.version", { version }), when(made), AUTHORS[author]] : [];
  if (state === "updating") {
    const doing = latest ? text("memory.summary.updating") : text("memory.summary.writing");
    parts.push(html`<span class="dots">${doing}</span>`);
  } else if (state === "pending" && !job) {
    parts.push(text("memory.summary.behind", { count: said - through }));
    parts.push(html`<button class="link" onClick=${refresh}>${text("memory.summary.update_now")}</button>`);
  } else if (state === "pending" && !error) {
    parts.push(latest ? text("memory.summary.updates_soon") : text("memory.summary.appears_soon"));
  } else if (!latest && !error) {
    parts.push(text("memory.summary.appears_after"));
  }
  return parts.filter(Boolean).map((part, at) => [at > 0 && " · ", part]);
}

/** The problem with a summary, as properties of Trouble. */
function problemOf(summary) {
  if (!summary?.error) return {};
  const { state, error, latest } = summary;
  const version = latest?.version;
  const kept = latest ? text("memory.summary.version_kept", { version }) : text("memory.summary.messages_kept");
  if (state === "failed") return { message: text("memory.summary.failed", { kept }), told: error };
  const message = text("memory.summary.retried", { kept });
  return state === "pending" ? { message, told: error, action: text("memory.summary.try_now"), kind: "" } : {};
}
