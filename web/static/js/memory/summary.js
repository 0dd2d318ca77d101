// The summary of the chat on display: its sections, its state, and forms to correct it.
//
// Guarantee: typed text is never overwritten, neither by a newer version nor while another chat is shown.  A correction
// of one item is applied to the newest version.
import * as api from "../page/api.js";
import { announce } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { Item, Items } from "./item.js";
import { Rows } from "../page/rows.js";
import { holder } from "../page/state.js";
import { EMPTY, SECTIONS, linesOf, partsOf, problemWith, replaced } from "./sections.js";
import { SummaryForm } from "./summary_form.js";
import { text, when } from "../page/words.js";

const AUTHORS = { person: text("memory.summary.by_you"), rollback: text("memory.summary.restored") };

/**
 * The summary of one chat; hidden while another is shown, so that forms stay open. `changed(summary)` is called with it after the person changed it,
 * `refresh()` to request an update. `summary` is null if there is none, or before it is `known`.
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

  /** Replace a line in the newest version, or remove it if `next` is null.  Resolves to the summary. */
  async change(section, line, next) {
    const path = api.summaryPath(this.props.sessionId);
    const { latest } = await api.get(path);
    const sections = replaced(latest.sections, section, line, next) ?? (next === null && latest.sections);
    const problem = sections ? problemWith(sections) : text("memory.summary.item_gone");
    if (problem) throw new Error(problem);
    return api.put(path, { sections, expected_version: latest.version }).catch((error) => {
      if (error.status === 409) return this.change(section, line, next); // there is a newer version by now
      throw error;
    });
  }

  compare = async () => {
    const { sessionId, summary, changed } = this.props;
    const { openVersions } = await import("./versions.js");
    const path = api.summaryPath(sessionId);
    const parts = ({ sections }) => partsOf(sections);
    const title = text("memory.summary.versions_of");
    const means = text("memory.summary.restore_means");
    openVersions({ title, path, parts, means, used: summary.head_version, changed });
  };

  render({ hidden, temporary, summary, known, refresh }, { whole }) {
    return html`<section class="memory-part" hidden=${hidden}>
        <h3 class="visually-hidden">${text("memory.summary.title")}</h3>
        <div class="row top">
          <p class="memory-about grow"><${Standing} ...${{ temporary, known, summary, refresh }} /></p>
          ${summary && !whole && holder.may.change && this.tools()}
        </div>
        <${Trouble} ...${problemOf(summary)} again=${refresh} />
        <div class="summary-body">
          ${whole && html`<${SummaryForm} summary=${summary} cancel=${() => this.setWhole(false)} saved=${this.saved} />`}
          ${this.sections(summary?.latest?.sections ?? EMPTY)}
        </div>
      </section>`;
  }

  tools() {
    const edit = { "aria-label": text("memory.summary.edit"), onClick: () => this.setWhole(true) };
    const versions = { "aria-label": text("memory.summary.versions_of"), onClick: this.compare };
    return html`<button class="quiet" ref=${this.editButton} ...${edit}>${text("memory.edit")}</button>
      ${this.props.summary.latest && html`<button class="quiet" ...${versions}>${text("memory.summary.versions")}</button>`}
    `;
  }

  sections(sections) {
    const { whole, editing } = this.state;
    const parts = SECTIONS.map(([name, title]) => {
      const edited = [...editing].filter((key) => key.startsWith(`${name}/`)).map((key) => key.slice(name.length + 1));
      return { name, title, lines: new Set([...linesOf(sections, name), ...edited]) }; // a form outlives its line
    });
    return html`<${Rows} hidden=${whole} hint=${text("memory.summary.keys")}>
        ${parts.map(
          ({ name, title, lines }) => lines.size > 0 && html`<${Items} key=${name} title=${title}>${[...lines].map((line) => this.item(name, line))}<//>`,
        )}
      <//>`;
  }

  item(section, line) {
    const key = `${section}/${line}`;
    const means = text("memory.summary.forget_item_means", { line });
    const edit = (open) => this.setEditing(key, open);
    const save = (next) => this.change(section, line, next);
    const its = { line, means, edit, editing: this.state.editing.has(key), save, changed: this.props.changed };
    return html`<${Item} key=${key} ...${its} />`;
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
