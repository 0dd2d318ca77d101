// All versions of a summary, newest first: the changes of each, the changes since, and a button to restore it.

import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { lineSteps } from "../page/diff.js";
import { announce } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { Rows } from "../page/rows.js";
import { EMPTY, linesOf } from "./sections.js";
import { text } from "../page/texts.js";
import { SECTIONS, modelName, moment, when } from "../page/words.js";

const SIGNS = { added: "+", removed: "−", changed: "~", kept: "" };
const NAMES = {
  added: text("memory.versions.added"),
  removed: text("memory.versions.removed"),
  changed: text("memory.versions.changed"),
};
const MARKS = { added: "ins", removed: "del", kept: "span" };

/** `changed(summary)` is called with the summary after a version was restored. */
export function openVersions(summary, changed) {
  const content = () => html`<${Versions} summary=${summary} changed=${changed} />`;
  return openDialog(text("memory.summary.versions_of"), content, { wide: true });
}

class Versions extends Component {
  path = api.summaryPath(this.props.summary.session_id);
  list = createRef();
  detail = createRef();
  state = {
    versions: [], // newest first, without gaps
    cursor: null, // to versions that are not loaded yet
    inReplies: this.props.summary.head_version, // the version that prompts contain
    chosen: null,
    sinceThen: false, // whether `chosen` is compared with the newest, or else with the one before
  };

  componentDidMount() {
    this.load();
  }

  componentDidUpdate(props, { chosen }) {
    if (chosen !== this.state.chosen) this.detail.current.scrollTop = 0;
  }

  /** Load the newest versions, or those before the ones that are loaded. */
  load = (cursor) => {
    const again = () => this.load(cursor);
    return this.attempt(async () => {
      const page = await api.get(`${this.path}/versions`, { limit: 50, cursor });
      this.setState(({ versions, chosen }) => ({
        versions: cursor ? [...versions, ...page.items] : page.items,
        cursor: page.next_cursor,
        chosen: cursor ? chosen : page.items[0].version,
      }));
    }, again);
  };

  restore = async () => {
    const { chosen, versions } = this.state;
    const newest = versions[0].version;
    const means = text("memory.versions.restore_means", { newest, next: newest + 1 });
    const title = text("memory.versions.restore_title", { version: chosen });
    if (!(await confirmed(title, means, text("memory.versions.restore_it")))) return;
    await this.attempt(async () => {
      const summary = await api.post(`${this.path}/rollback`, { version: chosen });
      this.setState({ inReplies: summary.head_version });
      this.props.changed(summary);
      await this.load();
      this.list.current.querySelector("button").focus();
      announce(text("memory.versions.restored", { version: chosen, newest: summary.latest.version }));
    });
  };

  render(_, { versions, cursor, trouble }) {
    const rows = versions.map((version) => html`<li key=${version.version}>${this.row(version)}</li>`);
    const more = cursor && html`<button onClick=${() => this.load(cursor)}>${text("memory.versions.earlier")}</button>`;
    return html`<div class="versions">
      <div class="version-side">
        <${Rows}>
          <ul class="version-list" aria-label=${text("memory.versions.list")} ref=${this.list}>${rows}</ul>
        <//>
        ${more}
      </div>
      <div class="grow">
        <${Trouble} ...${trouble} />
        <section class="version-detail" aria-label=${text("memory.versions.chosen")} tabindex="0" ref=${this.detail}>
          ${versions.length > 0 && this.chosen()}
        </section>
      </div>
    </div>`;
  }

  row(version) {
    const { versions, chosen, inReplies } = this.state;
    const choose = () => this.setState({ chosen: version.version });
    const current = String(version.version === chosen);
    let [badge, means] = ["", null];
    if (version === versions[0]) badge = text("memory.versions.newest");
    else if (version.version === inReplies)
      [badge, means] = [text("memory.versions.in_use"), text("memory.versions.in_use_means")];
    return html`
      <button data-row class="version" aria-current=${current} onClick=${choose} onFocus=${choose}>
        <span class="row">
          <strong>${text("memory.summary.version", version)}</strong>
          ${badge && html`<span class="badge" title=${means}>${badge}</span>`}
        </span>
        <span class="small muted">${when(version.created_at)}, ${author(version)}</span>
      </button>
    `;
  }

  chosen() {
    const { versions, chosen, sinceThen } = this.state;
    const newest = versions[0];
    const at = versions.findIndex(({ version }) => version === chosen);
    const [version, before] = versions.slice(at);
    const since = sinceThen && version !== newest;
    const [from, to] = since ? [version, newest] : [before, version];
    let title = before ? text("memory.versions.changes", version) : text("memory.summary.version", version);
    if (since) title = text("memory.versions.since", { version: chosen, newest: newest.version });
    const compare = () => this.setState({ sinceThen: !sinceThen });
    return html`
      <h3>${title}</h3>
      <p class="small muted">${described(version)}</p>
      ${version !== newest &&
      html`
        <div class="row version-tools">
          <button aria-pressed=${since} onClick=${compare}>${text("memory.versions.against_newest")}</button>
          <button onClick=${this.restore}>${text("memory.versions.restore")}</button>
        </div>
      `}
      <${Differences} before=${from?.sections ?? EMPTY} after=${to.sections} />
    `;
  }
}

function author({ author: who, model, restores }) {
  if (who === "person") return text("memory.summary.by_you");
  if (who === "rollback") return text("memory.versions.restores", { version: restores });
  return text("memory.versions.by_model", { model: modelName(model) });
}

function described({ created_at: made, through: count, tokens, prompt }) {
  const covers = `${moment(made)} · ${text("memory.versions.described", { count, tokens })}`;
  return prompt ? `${covers} · ${text("memory.versions.prompt", { prompt })}` : covers;
}

/** What differs between two summaries, as a list for each section. */
export function Differences({ before, after }) {
  const same = JSON.stringify(before) === JSON.stringify(after);
  if (same) return html`<p class="notice">${text("memory.versions.same")}</p>`;
  return SECTIONS.map(([name, title]) => {
    const steps = lineSteps(linesOf(before, name), linesOf(after, name));
    if (!steps.length) return null;
    return html`<h4>${title}</h4><ul class="differences" aria-label=${title}>${steps.map(line)}</ul>`;
  });
}

function line([kind, item]) {
  const mark = ([its, words]) => html`<${MARKS[its]}>${words}<//>`;
  return html`
    <li class=${kind}>
      <span class="sign" aria-hidden="true">${SIGNS[kind]}</span>
      <span>
        <span class="visually-hidden">${NAMES[kind]}</span>
        ${kind === "changed" ? item.map(mark) : mark([kind, item])}
      </span>
    </li>
  `;
}
