// What matters now about the person: sentences of a model's or the person's own, each with the facts and summaries that it rests on.
import * as api from "../page/api.js";
import { openSession } from "../chat/conversation.js";
import { Component, Trouble, html } from "../page/html.js";
import { Rows } from "../page/rows.js";
import { emit, holder } from "../page/state.js";
import { date, text } from "../page/words.js";
import { EditForm, oneLine } from "./edit_form.js";
import { Source } from "./facts.js";
import { Item } from "./item.js";
import { openVersions } from "./versions.js";

const POLL = 1000; // milliseconds between looks at an overview that is being written
const NOTHING = { version: 0, sentences: [], is_shown: true, is_updating: false, error: null };

/** `facts`: those of the person, to show what a sentence rests on. `leave()` is called before the page shows a chat. */
export default class StoredOverview extends Component {
  path = `${api.personPath()}/overview`;
  state = { overview: NOTHING, form: null }; // form: the sentence that is edited, or "add"

  async load() {
    return { overview: (await api.find(this.path)) ?? NOTHING };
  }

  /** Look again while it is being written. */
  componentDidUpdate(props, { overview }) {
    if (overview !== this.state.overview && this.state.overview.is_updating) this.timer = setTimeout(this.read, POLL);
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
  }

  refresh = () => this.attempt(async () => this.setState({ overview: await api.post(`${this.path}/refresh`) }));

  put(sentences) {
    return api.put(this.path, { sentences, expected_version: this.state.overview.version }).catch((error) => {
      this.read(); // there may be a newer version by now
      throw error;
    });
  }

  changed = (overview) => {
    this.setState({ overview, form: null });
    emit("memory");
  };

  add = async ({ sentence }) => {
    if (!sentence.trim()) throw new Error(text("memory.profile.empty"));
    this.changed(await this.put([...this.sent(), { text: oneLine(sentence) }]));
  };

  /** The sentences as the API takes them, with the one at a place changed or left out. */
  sent(at = -1, words = null) {
    const { sentences } = this.state.overview;
    const all = sentences.map(({ text: own, facts, summaries }, place) => ({ text: place === at ? words : own, facts, summaries }));
    return all.filter((sentence) => sentence.text !== null);
  }

  compare = () => {
    const parts = ({ sentences }) => [[text("memory.now.title"), sentences.map((sentence) => sentence.text)]];
    openVersions({ title: text("memory.now.versions"), path: this.path, parts, changed: this.changed });
  };

  render(_, { overview, form, trouble }) {
    const { version, sentences, is_shown: isShown, is_updating: isUpdating, error, created_at: at } = overview;
    const standing = [version > 0 && date(at), version > 0 && !isShown && text("memory.now.not_shown")].filter(Boolean).join(" · ");
    return html`<${Trouble} ...${trouble} />
      <${Trouble} message=${error && text("memory.now.failed")} told=${error} again=${this.refresh} />
      <p class="muted small" role="status">${isUpdating ? html`<span class="dots">${text("memory.now.writing")}</span>` : standing || text("memory.now.none")}</p>
      <${Rows} hint=${text("memory.summary.keys")} hidden=${!sentences.length}><ul aria-label=${text("memory.now.title")}>${sentences.map(this.item)}</ul><//>
      ${form === "add"
        ? html`<${EditForm} class="item-form" save=${this.add} cancel=${() => this.setState({ form: null })}>
              <textarea name="sentence" rows="2" aria-label=${text("memory.item.line")} />
            <//>`
        : holder.may.change && this.tools(overview)}`;
  }

  item = ({ text: line, facts, summaries }, at) => {
    const edit = (open) => this.setState({ form: open ? line : null });
    const its = { line, edit, means: text("memory.now.forget_means", { line }), changed: this.changed };
    const known = this.props.facts.filter(({ id }) => facts.includes(id));
    const show = (session) => {
      this.props.leave();
      openSession(session);
    };
    return html`<${Item} key=${line} editing=${this.state.form === line} save=${(words) => this.put(this.sent(at, words))} ...${its}>
        ${facts.length + summaries.length > 0 &&
        html`<details class="small">
            <summary>${text("memory.now.sources", { count: facts.length + summaries.length })}</summary>
            ${known.map((fact) => html`<p>${fact.text}</p><${Source} fact=${fact} title=${date(fact.valid_from)} leave=${this.props.leave} />`)}
            ${summaries.map((one) => html`<button class="link" onClick=${() => show(one.session_id)}>${text("memory.now.summary")}</button>`)}
          </details>`}
      <//>`;
  };

  tools = ({ version, is_updating: isUpdating }) => html`<div class="row wrap">
      <button class="quiet" disabled=${isUpdating} onClick=${this.refresh}>${text("memory.now.refresh")}</button>
      <button class="quiet" onClick=${() => this.setState({ form: "add" })}>${text("memory.now.add")}</button>
      ${version > 0 && html`<button class="quiet" onClick=${this.compare}>${text("memory.summary.versions")}</button>`}
    </div>`;
}
