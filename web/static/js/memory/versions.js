// All versions of something, newest first: the changes of each, the changes since, and a button to restore it.
import "../../vendor/diff.mjs"; // its minified file sets a global name
import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { announce } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { Choice, Edge, Rows } from "../page/rows.js";
import { modelName, moment, text, when } from "../page/words.js";

const { diffArrays, diffWordsWithSpace } = globalThis.Diff;
const ALIKE = 0.4; // the part of their letters that a removed and an added line share if they are one changed line
const intlSegmenter = new Intl.Segmenter(undefined, { granularity: "word" });
const kindOf = ({ added, removed }) => (added ? "added" : removed ? "removed" : "kept");
const letters = (words) => words.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
const SIGNS = { added: "+", removed: "−", changed: "~", kept: "" };
const MARKS = { added: "ins", removed: "del", kept: "span" };

/**
 * `path` is what has the versions in the API; `parts(version)` is one as a list of [title, lines].  Prompts contain the
 * version `used`.  `means` is what else it means to restore one; then `changed` is called with the API's answer.
 */
export function openVersions({ title, ...of }) {
  return openDialog(title, () => html`<${Versions} ...${of} />`, { wide: true });
}

class Versions extends Component {
  list = createRef();
  detail = createRef();
  state = {
    versions: [], // newest first, without gaps
    cursor: null, // to versions that are not loaded yet
    used: this.props.used,
    chosen: null,
    sinceThen: false, // whether `chosen` is compared with the newest, or else with the one before
  };

  componentDidUpdate(props, { chosen }) {
    if (chosen !== this.state.chosen) this.detail.current.scrollTop = 0;
  }

  /** Load the newest versions. */
  async load() {
    const page = await api.get(`${this.props.path}/versions`);
    return { versions: page.items, cursor: page.next_cursor, chosen: page.items[0].version };
  }

  loadEarlier = async () => {
    const page = await api.get(`${this.props.path}/versions`, { cursor: this.state.cursor });
    this.setState(({ versions }) => ({ versions: [...versions, ...page.items], cursor: page.next_cursor }));
  };

  restore = async () => {
    const { chosen, versions } = this.state;
    const newest = versions[0].version;
    const means = [text("memory.versions.restore_means", { newest, next: newest + 1 }), this.props.means];
    const title = text("memory.versions.restore_title", { version: chosen });
    if (!(await confirmed(title, means.join(" "), text("memory.versions.restore_it")))) return;
    await this.attempt(async () => {
      const answer = await api.post(`${this.props.path}/rollback`, { version: chosen });
      this.setState({ used: answer.head_version });
      this.props.changed(answer);
      await this.read();
      this.list.current.querySelector("button").focus();
      announce(text("memory.versions.restored", { version: chosen, newest: newest + 1 }));
    });
  };

  render(_, { versions, cursor, trouble }) {
    return html`<div class="choosing">
        <${Rows} class="choices">
          <ul aria-label=${text("memory.versions.list")} ref=${this.list}>${versions.map(this.row)}</ul>
          ${cursor && html`<${Edge} key=${cursor} more=${this.loadEarlier} />`}
        <//>
        <section class="chosen" aria-label=${text("memory.versions.chosen")} tabindex="0" ref=${this.detail}>
          <${Trouble} ...${trouble} />
          ${versions.length > 0 && this.chosen()}
        </section>
      </div>`;
  }

  row = (version) => {
    const { versions, chosen, used } = this.state;
    const newest = version === versions[0];
    const inUse = version.version === used && !newest;
    const choose = () => this.setState({ chosen: version.version });
    return html`<${Choice}
        key=${version.version}
        name=${text("memory.summary.version", version)}
        badge=${newest ? text("memory.versions.newest") : inUse && text("memory.versions.in_use")}
        title=${inUse ? text("memory.versions.in_use_means") : null}
        details="${when(version.created_at)}, ${author(version)}"
        chosen=${version.version === chosen}
        onClick=${choose}
        onFocus=${choose}
      />`;
  };

  chosen() {
    const { versions, chosen, sinceThen } = this.state;
    const { parts } = this.props;
    const newest = versions[0];
    const at = versions.findIndex(({ version }) => version === chosen);
    const [version, before] = versions.slice(at);
    const since = sinceThen && version !== newest;
    const [from, to] = since ? [version, newest] : [before, version];
    let title = before ? text("memory.versions.changes", version) : text("memory.summary.version", version);
    if (since) title = text("memory.versions.since", { version: chosen, newest: newest.version });
    const compare = () => this.setState({ sinceThen: !sinceThen });
    return html`<h3>${title}</h3>
      <p class="small muted">${described(version)}</p>
      ${version !== newest &&
      html`<div class="row wrap">
          <button aria-pressed=${since} onClick=${compare}>${text("memory.versions.against_newest")}</button>
          <button onClick=${this.restore}>${text("memory.versions.restore")}</button>
        </div>
      `}
      <${Differences} before=${from ? parts(from) : []} after=${parts(to)} />`;
  }
}

function author({ author: who, model, restores }) {
  if (who === "person") return text("memory.summary.by_you");
  if (who === "erasure") return text("memory.versions.erased");
  if (who === "rollback")
    return restores ? text("memory.versions.restores", { version: restores }) : text("memory.summary.restored");
  return model ? text("memory.versions.by_model", { model: modelName(model) }) : text("memory.versions.by_recap");
}

function described({ created_at: made, through: count, tokens, prompt }) {
  if (count === undefined) return moment(made); // only a summary covers messages
  const covers = `${moment(made)} · ${text("memory.versions.described", { count, tokens })}`;
  return prompt ? `${covers} · ${text("memory.versions.prompt", { prompt })}` : covers;
}

/** What differs between two versions, each a list of [title, lines]. */
export function Differences({ before, after }) {
  const same = JSON.stringify(before) === JSON.stringify(after);
  if (same) return html`<p class="notice">${text("memory.versions.same")}</p>`;
  const [old, now] = [new Map(before), new Map(after)];
  return [...new Set([...old.keys(), ...now.keys()])].map((title) => {
    const steps = lineSteps(old.get(title) ?? [], now.get(title) ?? []);
    if (!steps.length) return null;
    return html`<h4>${title}</h4><ul class="differences" aria-label=${title}>${steps.map(line)}</ul>`;
  });
}

function line([kind, item]) {
  const mark = ([its, words]) => html`<${MARKS[its]}>${words}<//>`;
  return html`<li class=${kind}>
      <span class="sign" aria-hidden="true">${SIGNS[kind]}</span>
      <span>
        ${kind !== "kept" && html`<span class="visually-hidden">${text(`memory.versions.kinds.${kind}`)}</span>`}
        ${kind === "changed" ? item.map(mark) : mark([kind, item])}
      </span>
    </li>`;
}

/** The steps between lines, as [kind, line].  For the kind "changed" there are the steps between words in its place. */
function lineSteps(before, after) {
  const found = [];
  for (const part of diffArrays(before, after)) {
    for (const line of part.value) {
      const old = part.added && found.find(([kind, other]) => kind === "removed" && wordSteps(other, line));
      if (old) Object.assign(old, ["changed", wordSteps(old[1], line)]);
      else found.push([kindOf(part), line]);
    }
  }
  return found;
}

/** The steps between the words of two lines that are alike, or null. */
function wordSteps(before, after) {
  const parts = diffWordsWithSpace(before, after, { intlSegmenter });
  const kept = parts.filter((part) => kindOf(part) === "kept").map((part) => part.value).join("");
  if (letters(kept) < ALIKE * Math.max(letters(before), letters(after), 1)) return null;
  return parts.map((part) => [kindOf(part), part.value]);
}
