// Examples: messages with good answers, which the model is shown when a similar message comes.
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { Rows } from "../page/rows.js";
import { date, shortened, text } from "../page/words.js";
import { Item } from "./item.js";

export default class Examples extends Component {
  state = { items: null }; // null: not loaded yet

  async load() {
    return { items: await api.all("/api/examples") };
  }

  render(_, { items, trouble }) {
    return html`<${Trouble} ...${trouble} />
      ${items?.length === 0 && html`<p class="small">${text("memory.examples.none")}</p>`}
      <${Rows}><ul aria-label=${text("memory.longterm.titles.examples")}>${items?.map(this.row)}</ul><//>`;
  }

  row = ({ id, input, output, messages, tags, rating, created_at: at }) => {
    const called = messages.flatMap(({ tool_calls: calls = [] }) => calls.map((call) => `${call.function.name}(${call.function.arguments})`));
    const forget = () => api.del(`/api/examples/${id}`).catch(api.unlessGone);
    const means = text("memory.examples.forget_means", { words: shortened(input) });
    return html`<${Item} key=${id} line=${shortened(input, 300)} means=${means} save=${forget} changed=${() => this.read()}>
        ${called.map((call) => html`<p class="small typed">${shortened(call, 200)}</p>`)}
        <p class="typed">${shortened(output, 600)}</p>
        <p class="fact-foot">
          <span>${text("memory.examples.rating", { rating })}</span><span>${date(at)}</span>
          ${tags.map((tag) => html`<span class="badge">${tag}</span>`)}
        </p>
      <//>`;
  };
}
