// The form to correct a fact or to add one.

import { html } from "../page/html.js";
import { tooLong } from "../page/words.js";
import { EditForm } from "./edit_form.js";

/** The categories of the API, with labels. */
export const CATEGORIES = {
  identity: "identity",
  preference: "preference",
  plan: "plan",
  event: "event",
  requirement: "requirement",
  constraint: "constraint",
  relationship: "relationship",
  work: "work",
  other: "other",
};

const IMPORTANCE = { 1: "1 least", 2: "2", 3: "3", 4: "4", 5: "5 most" };
const SCOPES = { session: "this chat", user: "all chats" };
const TEXT_MAX = 500;

/**
 * `save(values)` gets the values that differ from `fact`.  It resolves when they are stored, and throws on failure.
 * `inSession`: whether the fact may be limited to one chat.
 */
export function FactForm({ fact = {}, inSession = Boolean(fact.session_id), action, save, cancel }) {
  const check = async ({ text, importance, ...chosen }) => {
    const values = { text: text.trim().replace(/\s*\n\s*/g, " "), importance: Number(importance), ...chosen };
    const problem = tooLong(values.text, TEXT_MAX);
    if (problem) throw new Error(problem);
    if (!values.text) throw new Error("A fact needs some words. To forget it, cancel this and choose Forget.");
    await save(Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== fact[name])));
  };
  return html`
    <${EditForm} class="fact-form" action=${action} save=${check} cancel=${cancel}>
      <textarea
        name="text"
        rows="3"
        defaultValue=${fact.text ?? ""}
        aria-label="Fact"
        placeholder="One statement, as “Allergic to walnuts”"
      />
      <div class="fact-form-choices">
        <${Choice} label="Importance" name="importance" options=${IMPORTANCE} chosen=${fact.importance ?? 3} />
        <${Choice} label="Category" name="category" options=${CATEGORIES} chosen=${fact.category ?? "other"} />
        ${inSession && html`<${Choice} label="Holds in" name="scope" options=${SCOPES} chosen=${fact.scope ?? "user"} />`}
      </div>
    <//>
  `;
}

const Choice = ({ label, name, options, chosen }) => html`
  <label class="field">
    <span>${label}</span>
    <select name=${name}>
      ${Object.entries(options).map(
        ([value, words]) => html`<option value=${value} selected=${value === String(chosen)}>${words}</option>`,
      )}
    </select>
  </label>
`;
