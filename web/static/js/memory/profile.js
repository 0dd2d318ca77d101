// The profile of the person: each value with the words that it rests on, its versions, and a form to add to it.
import * as api from "../page/api.js";
import { Component, Select, Trouble, html } from "../page/html.js";
import { Rows } from "../page/rows.js";
import { emit, space } from "../page/state.js";
import { date, text, titleOf } from "../page/words.js";
import { EditForm, oneLine } from "./edit_form.js";
import { Source } from "./facts.js";
import { Item, Items } from "./item.js";
import { openVersions } from "./versions.js";

const NOTHING = { version: 0, document: {}, sources: {} };

export default class Profile extends Component {
  path = `${api.personPath()}/profile`;
  state = {
    profile: null, // not loaded yet
    fields: {}, // the JSON Schema of each value that a profile may have, by its name
    form: null, // the pointer of the value that is edited, or "add"
  };

  async load() {
    const [profile, { schema }] = await Promise.all([api.find(this.path), api.get("/api/profile/schema", { kind: space() ? "space" : "user" })]);
    return { profile: profile ?? NOTHING, fields: schema.properties ?? {} };
  }

  patch(operation) {
    const body = { patch: [operation], expected_version: this.state.profile.version };
    return api.patch(this.path, body).catch((error) => {
      this.read(); // there may be a newer version by now
      throw error;
    });
  }

  changed = (profile) => {
    this.setState({ profile, form: null });
    emit("memory");
  };

  add = async ({ name, value }) => {
    if (!value.trim()) throw new Error(text("memory.profile.empty"));
    const path = this.state.fields[name].type === "array" ? `/${name}/-` : `/${name}`;
    this.changed(await this.patch({ op: "add", path, value: oneLine(value) }));
  };

  compare = () => {
    const lines = ([title, values]) => [title, values.map(({ value }) => String(value))];
    const parts = ({ document }) => [...grouped(document)].map(lines);
    openVersions({ title: text("memory.profile.versions"), path: this.path, parts, changed: this.changed });
  };

  render(_, { profile, form, trouble }) {
    if (!profile) return html`<${Trouble} ...${trouble} />`;
    const groups = [...grouped(profile.document, profile.sources)];
    return html`<${Trouble} ...${trouble} />
      ${groups.length
        ? html`<${Rows} hint=${text("memory.summary.keys")}>
            ${groups.map(([title, values]) => html`<${Items} key=${title} title=${title}>${values.map(this.item)}<//>`)}
          <//>`
        : html`<p class="muted small">${text("memory.profile.none")}</p>`}
      ${form === "add" ? this.addForm() : this.tools(profile)}
    `;
  }

  item = ({ path, value, source }) => {
    const typed = (words) => (typeof value === "string" ? words : JSON.parse(words)); // a number stays one
    const save = (next) => this.patch(next === null ? { op: "remove", path } : { op: "replace", path, value: typed(next) });
    const edit = (open) => this.setState({ form: open ? path : null });
    const line = String(value);
    const its = { line, means: text("memory.profile.forget_means", { line }), edit, save, changed: this.changed };
    return html`<${Item} key=${path} editing=${this.state.form === path} ...${its}>
        <${Source} fact=${{ quote: source?.quote }} title=${source?.since && date(source.since)} />
      <//>`;
  };

  tools = ({ version }) => html`<div class="row wrap">
      <button class="quiet" onClick=${() => this.setState({ form: "add" })}>${text("memory.profile.add")}</button>
      ${version > 0 && html`<button class="quiet" onClick=${this.compare}>${text("memory.summary.versions")}</button>`}
    </div>`;

  addForm = () => html`<${EditForm} class="item-form" save=${this.add} cancel=${() => this.setState({ form: null })}>
      <${Select} name="name" aria-label=${text("memory.profile.about")} options=${Object.keys(this.state.fields).map((name) => [name, titleOf([name])])} />
      <textarea name="value" rows="2" aria-label=${text("memory.item.line")} />
    <//>`;
}

/** The values of a document by their titles, each with its JSON Pointer and its source. */
const grouped = (document, sources) => Map.groupBy(valuesOf(document, sources, []), ({ title }) => title);

function valuesOf(value, source, names) {
  const path = names.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  if (value === null || typeof value !== "object") return [{ title: titleOf(names), path, value, source }];
  return Object.entries(value).flatMap(([name, one]) => valuesOf(one, source?.[name], [...names, name]));
}
