// Instructions to the model about how to answer: their texts and versions, and what Recap proposes to change in them.
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { Rows } from "../page/rows.js";
import { text } from "../page/words.js";
import { Item } from "./item.js";
import { Differences, openVersions } from "./versions.js";

const FIRST = { name: "general", version: 0, text: "" }; // what feedback changes, once there is one

const pathOf = (name) => `/api/instructions/${encodeURIComponent(name)}`;
const partsOf = (/** @type {any} */ { text: words }) => [[text("memory.instructions.text"), words ? words.split("\n") : []]];

export default class Instructions extends Component {
  state = { items: [], editing: null }; // editing: the name of one

  async load() {
    const { items } = await api.get("/api/instructions");
    return { items: items.some(({ name }) => name === FIRST.name) ? items : [FIRST, ...items] };
  }

  decide = (name, accept) => this.perform(() => api.post(`${pathOf(name)}/proposal`, { accept }));

  compare = (name) => {
    const title = text("memory.instructions.versions", { name });
    openVersions({ title, path: pathOf(name), parts: partsOf, changed: this.read });
  };

  render(_, { items, trouble }) {
    const rows = html`<${Rows} hint=${text("memory.summary.keys")}>${items.map(this.section)}<//>`;
    return [html`<${Trouble} ...${trouble} />`, rows];
  }

  section = (instruction) => {
    const { name, text: words, version, of_tenant: shared, proposal } = instruction;
    const means = text("memory.instructions.forget_means");
    const editing = this.state.editing === name;
    const edit = (open) => this.setState({ editing: open ? name : null });
    const save = (next) => {
      if (next === null) return api.del(pathOf(name)).catch(api.unlessGone);
      return api.put(pathOf(name), { text: next, expected_version: version });
    };
    return html`<section key=${name} class="summary-section" aria-label=${name}>
        ${(name !== "general" || this.state.items.length > 1) && html`<h4>${name}</h4>`}
        ${shared
          ? html`<p class="typed">${words} <span class="badge">${text("memory.instructions.shared")}</span></p>`
          : html`<ul>
                <${Item} manyLines line=${words} ...${{ means, editing, edit, save }} changed=${this.read}>${!words && text("memory.instructions.none")}<//>
              </ul>
            `}
        ${proposal && this.proposal(instruction)}
        ${version > 1 && !shared && html`<button class="quiet" onClick=${() => this.compare(name)}>${text("memory.summary.versions")}</button>`}
      </section>`;
  };

  proposal = ({ proposal, ...instruction }) => html`<div class="notice" role="group" aria-label=${text("memory.instructions.proposal")}>
      <p>${text("memory.instructions.proposed", proposal)}</p>
      <${Differences} before=${partsOf(instruction)} after=${partsOf(proposal)} />
      <div class="row wrap">
        <button onClick=${() => this.decide(instruction.name, true)}>${text("memory.instructions.accept")}</button>
        <button onClick=${() => this.decide(instruction.name, false)}>${text("memory.instructions.refuse")}</button>
      </div>
    </div>`;
}
