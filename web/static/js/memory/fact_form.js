// The form to correct a fact or to add one.
import { html } from "../page/html.js";
import { text, tooLong } from "../page/words.js";
import { EditForm, oneLine } from "./edit_form.js";

const NAMES = ["identity", "preference", "plan", "event", "requirement", "constraint", "relationship", "work", "other"];

/** The categories of the API, with labels. */
export const CATEGORIES = Object.fromEntries(NAMES.map((name) => [name, text(`memory.fact.category_${name}`)]));
const IMPORTANCE = { 1: text("memory.fact_form.least"), 2: "2", 3: "3", 4: "4", 5: text("memory.fact_form.most") };
const SCOPES = { session: text("memory.fact_form.this_chat"), user: text("memory.fact_form.all_chats") };
const TEXT_MAX = 500;

/**
 * `save(values)` gets the values that differ from `fact`.  It resolves when they are stored, and throws on failure.
 * `inSession`: whether the fact may be limited to one chat.
 */
export function FactForm({ fact = {}, inSession = Boolean(fact.session_id), action, save, cancel }) {
  const own = fact.category && !(fact.category in CATEGORIES) ? { [fact.category]: fact.category } : {}; // by the rules
  const check = async ({ importance, ...typed }) => {
    const values = { ...typed, text: oneLine(typed.text), importance: Number(importance) };
    const problem = tooLong(values.text, TEXT_MAX);
    if (problem) throw new Error(problem);
    if (!values.text) throw new Error(text("memory.fact_form.empty"));
    await save(Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== fact[name])));
  };
  return html`<${EditForm} class="fact-form" action=${action} save=${check} cancel=${cancel}>
      <textarea
        name="text"
        rows="3"
        defaultValue=${fact.text ?? ""}
        aria-label=${text("memory.fact_form.fact")}
        placeholder=${text("memory.fact_form.example")}
      />
      <div class="fact-form-choices">
        <${Choice} name="importance" options=${IMPORTANCE} chosen=${fact.importance ?? 3} />
        <${Choice} name="category" options=${{ ...CATEGORIES, ...own }} chosen=${fact.category ?? "other"} />
        ${inSession && html`<${Choice} name="scope" options=${SCOPES} chosen=${fact.scope ?? "user"} />`}
      </div>
    <//>`;
}

const Choice = ({ name, options, chosen }) => html`<label class="field">
    <span>${text(`memory.fact_form.${name}`)}</span>
    <select name=${name}>
      ${Object.entries(options).map(([value, words]) => html`<option value=${value} selected=${value === String(chosen)}>${words}</option>`)}
    </select>
  </label>`;
