// Rules of what is kept: topics and words that stay out, categories and how long they stay, and facts that wait for review.
import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { announce } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { emit, holder } from "../page/state.js";
import { text } from "../page/words.js";
import { CATEGORIES } from "./fact_form.js";

const SHOWN_MAX = 20; // facts that a question names

const lines = (words) => String(words).split("\n").map((line) => line.trim()).filter(Boolean);

export default class Rules extends Component {
  form = createRef();
  state = { stored: null, waiting: [] }; // stored: the rules; null: not loaded yet

  async load() {
    const [stored, waiting] = await Promise.all([api.get("/api/rules"), api.all("/api/facts", { state: "waiting" })]);
    return { stored, waiting };
  }

  decide = (decision, facts) =>
    this.perform(async () => {
      await api.post("/api/facts/review", { [decision]: facts.map((fact) => fact.id) });
      announce(text(`memory.rules.${decision}`, { count: facts.length }));
      emit("memory");
    });

  save = (event) => {
    event.preventDefault();
    this.attempt(async () => {
      const stored = await this.put(this.typed());
      if (!stored) return;
      this.setState({ stored });
      announce(text("memory.rules.saved"));
      emit("memory");
    });
  };

  /** The rules as they stand in the form. */
  typed() {
    const form = new FormData(this.form.current);
    const before = Object.fromEntries(this.state.stored.rules.categories.map((category) => [category.name, category]));
    const named = Object.keys(CATEGORIES).map((name) => {
      const about = before[name]?.about ?? ""; // which the form does not show
      return { name, keep: form.has(`keep ${name}`), days: Number(form.get(`days ${name}`)) || null, about };
    });
    const own = lines(form.get("own")).map((line) => {
      const [typed, ...about] = line.split(":");
      const name = typed.trim().toLowerCase();
      const { keep = true, days = null } = before[name] ?? {};
      return { name, keep, days, about: about.join(":").trim() };
    });
    const categories = [...named.filter(({ keep, days, about }) => !keep || days || about), ...own];
    return { categories, topics: lines(form.get("topics")), words: lines(form.get("words")), review: form.has("review") };
  }

  /** Store the rules; ask first if they close what is stored. Resolves to nothing if the person changes their mind. */
  async put(rules) {
    const effect = await api.post("/api/rules/preview", rules);
    const close = effect.fact_count + effect.summaries + effect.profiles > 0 ? await this.ask(effect) : null;
    return close === undefined ? null : api.put("/api/rules", { ...rules, close, expected_version: this.state.stored.version });
  }

  ask({ facts, fact_count: count, summaries, profiles }) {
    const content = (done) => html`<p>${text("memory.rules.closes", { count })}</p>
      <ul>${facts.slice(0, SHOWN_MAX).map((fact) => html`<li key=${fact.id}>${fact.text}</li>`)}</ul>
      ${summaries + profiles > 0 && html`<p>${text("memory.rules.closes_lines", { summaries, profiles })}</p>`}
      <div class="row wrap end">
        <button onClick=${() => done()}>${text("page.cancel")}</button>
        <button onClick=${() => done(false)}>${text("memory.rules.leave")}</button>
        <button class="danger" onClick=${() => done(true)}>${text("memory.rules.close")}</button>
      </div>`;
    return openDialog(text("memory.rules.question"), content);
  }

  render(_, { stored, waiting, busy, trouble }) {
    if (!stored) return html`<${Trouble} ...${trouble} />`;
    const { rules, in_force: force, version } = stored;
    const shared = [...force.topics, ...force.words].filter((words) => !rules.topics.includes(words) && !rules.words.includes(words));
    return html`<${Trouble} ...${trouble} />
      ${waiting.length > 0 && this.review(waiting)}
      ${shared.length > 0 && html`<p class="small">${text("memory.rules.shared", { words: shared.join(", ") })}</p>`}
      ${holder.may.change && html`<form class="item-form" key=${version} ref=${this.form} onSubmit=${this.save}>
          <${Lines} name="topics" value=${rules.topics} /><${Lines} name="words" value=${rules.words} />
          <label class="check start"><input type="checkbox" name="review" defaultChecked=${rules.review} /> ${text("memory.rules.review")}</label>
          <details><summary>${text("memory.rules.categories")}</summary>${this.categories(rules)}</details>
          <div class="row end"><button class="primary" disabled=${busy}>${text("page.save")}</button></div>
        </form>`}`;
  }

  review = (waiting) => html`<section class="notice" aria-label=${text("memory.rules.waiting")}>
      <h4>${text("memory.rules.waiting")}</h4>
      <ul>
        ${waiting.map((fact) => html`<li key=${fact.id}>
            <p>${fact.text}</p>
            ${fact.quote && html`<p class="small quote">${text("memory.fact.quote", { words: fact.quote })}</p>`}
            <div class="row wrap">
              <button aria-label=${text("memory.rules.accept_named", { fact: fact.text })} onClick=${() => this.decide("accepted", [fact])}>${text("memory.instructions.accept")}</button>
              <button aria-label=${text("memory.rules.refuse_named", { fact: fact.text })} onClick=${() => this.decide("refused", [fact])}>${text("memory.instructions.refuse")}</button>
            </div>
          </li>`)}
      </ul>
      ${waiting.length > 1 && html`<button onClick=${() => this.decide("accepted", waiting)}>${text("memory.rules.accept_all")}</button>`}
    </section>`;

  categories({ categories }) {
    const rule = (name) => categories.find((category) => category.name === name) ?? { keep: true, days: null };
    const own = categories.filter(({ name }) => !(name in CATEGORIES)).map(({ name, about }) => (about ? `${name}: ${about}` : name));
    return html`${Object.entries(CATEGORIES).map(([name, words]) => {
        const days = text("memory.rules.days", { category: words });
        const field = { name: `days ${name}`, defaultValue: rule(name).days ?? "", placeholder: text("memory.rules.for_ever"), title: days, "aria-label": days };
        return html`<div class="row rule" key=${name}>
          <label class="check start grow"><input type="checkbox" name=${`keep ${name}`} defaultChecked=${rule(name).keep} /> ${words}</label>
          <input type="number" min="1" max="36500" ...${field} />
        </div>`;
      })}
      <${Lines} name="own" value=${own} />`;
  }
}

const Lines = ({ name, value }) => html`<label class="field">
    ${text(`memory.rules.${name}`)}<textarea name=${name} rows="2" defaultValue=${value.join("\n")} placeholder=${text(`memory.rules.${name}_example`)} />
  </label>`;
