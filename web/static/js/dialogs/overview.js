// What Recap knows about a person, to be read in a minute: what matters now, who they are, how they want to be answered, the newest facts,
// what is no longer true, and how much was forgotten lately.  Each line can be corrected, forgotten and traced to its words; a model may tell it as prose.
import * as api from "../page/api.js";
import { Component, Filled, Trouble, html } from "../page/html.js";
import { render as markdown } from "../page/markdown.js";
import { FactList } from "../memory/facts.js";
import Instructions from "../memory/instructions.js";
import StoredOverview from "../memory/overview.js";
import Profile from "../memory/profile.js";
import { MemorySwitch } from "./memory_switch.js";
import { emit, holder, on } from "../page/state.js";
import { date, randomId, text } from "../page/words.js";

const NEWEST = 8;
const ENDED = 8;
const DAYS = [1, 7, 30]; // ago: what was known then, and is not now, is no longer true

export class Overview extends Component {
  state = { facts: null, stored: null, ended: [], prose: "", builtin: true };

  componentDidMount() {
    this.read();
    on("memory", () => this.gone || this.read());
  }

  componentWillUnmount() {
    this.gone = true;
  }

  async load() {
    const [facts, { model }, stored] = await Promise.all([api.all("/api/facts"), api.get("/health/ready"), api.find(api.personPath())]);
    this.setState({ facts, stored, builtin: model?.builtin }); // before what takes longer
    const then = DAYS.map((days) => new Date(Date.now() - days * 86_400_000).toISOString());
    const past = (await Promise.all(then.map((as_of) => api.all("/api/facts", { as_of })))).flat();
    const now = new Set(facts.map(({ id }) => id));
    return { ended: [...new Map(past.map((fact) => [fact.id, fact])).values()].filter(({ id }) => !now.has(id)) };
  }

  tell = () =>
    this.attempt(async () => {
      this.setState({ prose: "" });
      const heard = ({ choices }) => this.setState(({ prose }) => ({ prose: prose + (choices?.[0]?.delta?.content ?? "") }));
      await api.chat({ message: text("dialogs.overview.ask"), temporary: true, recall: "off" }, { key: randomId(), heard });
    });

  changed = () => emit("memory");

  render({ leave }, { facts, stored, ended, prose, builtin, busy, trouble }) {
    const part = (name, content) => html`<section class="part"><h3>${text(`dialogs.overview.${name}`)}</h3>${content}</section>`;
    if (!facts) return html`<${Trouble} ...${trouble} />${busy && html`<p class="muted">${text("dialogs.manage.loading")}</p>`}`;
    const { facts_forgotten: count = 0, last_forgotten_at: last } = stored ?? {};
    return html`<${Trouble} ...${trouble} />
      ${!facts.length && html`<p>${text("dialogs.manage.empty_hint")}</p>`}
      ${facts.length > 0 && part("now", html`<${StoredOverview} facts=${facts} leave=${leave} />`)}
      ${prose && html`<${Filled} class="body md prose" of=${prose} make=${markdown} />`}
      ${facts.length > 0 && !builtin && html`<div class="row"><button disabled=${busy} onClick=${this.tell}>${text("dialogs.overview.tell")}</button></div>`}
      <div class="halves">${facts.length > 0 && part("profile", html`<${Profile} />`)}${part("instructions", html`<${Instructions} />`)}</div>
      ${facts.length > 0 &&
      part("newest", html`<${FactList} label=${text("dialogs.overview.newest")} facts=${facts.slice(0, NEWEST)} changed=${this.changed} leave=${leave} />`)}
      ${ended.length > 0 && part("ended", html`<ul class="lines">${ended.slice(0, ENDED).map((fact) => html`<li><s>${fact.text}</s></li>`)}</ul>`)}
      ${count > 0 && html`<p class="muted small">${text("dialogs.overview.forgotten", { count, day: date(last) })}</p>`}
      ${holder.may.change && part("memory", html`<${MemorySwitch} />`)}
    `;
  }
}
