// The form to correct a fact or to add one.  Enter saves, Escape cancels.
// Guarantee: the typed text stays in the form until it is stored.

import { button, el, isEnter } from "../page/dom.js";
import { randomId, tooLong } from "../page/words.js";

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

const IMPORTANCE = [
  ["5", "5 most"],
  ["4", "4"],
  ["3", "3"],
  ["2", "2"],
  ["1", "1 least"],
];
const SCOPES = { session: "this chat", user: "all chats" };
const TEXT_MAX = 500;

/**
 * `save(values)` gets the values that differ from `fact`.  It resolves when they are stored, and throws on failure.
 * `inSession`: whether the fact may be limited to one chat.
 */
export function factForm({ fact = {}, inSession = Boolean(fact.session_id), action, save, cancel }) {
  const id = randomId();
  const text = el("textarea", {
    value: fact.text ?? "",
    rows: 3,
    "aria-label": "Fact",
    placeholder: "One statement, as “Allergic to walnuts”",
    "aria-describedby": id,
  });
  const importance = select("Importance", IMPORTANCE, String(fact.importance ?? 3));
  const category = select("Category", Object.entries(CATEGORIES), fact.category ?? "other");
  const scope = inSession ? select("Holds in", Object.entries(SCOPES), fact.scope ?? "user") : null;
  const trouble = el("p.trouble", { id, role: "alert", hidden: true });
  const go = el("button.primary", { type: "submit" }, action);
  const form = el(
    "form.fact-form",
    { noValidate: true },
    text,
    el("div.fact-form-choices", {}, importance, category, scope),
    trouble,
    el("div.row.end", {}, button("Cancel", cancel), go),
  );

  function complain(words) {
    trouble.textContent = words;
    trouble.hidden = !words;
  }

  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault(); // otherwise the dialog around the form would close too
      event.stopPropagation();
      cancel();
    } else if (event.target === text && isEnter(event)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    const said = text.value.trim().replace(/\s*\n\s*/g, " ");
    if (!said) {
      complain("A fact needs some words. To forget it, cancel this and choose Forget.");
      text.focus();
      return;
    }
    if (tooLong(said, TEXT_MAX)) return complain(tooLong(said, TEXT_MAX));
    const values = { text: said, importance: Number(importance.lastChild.value), category: category.lastChild.value };
    if (scope) values.scope = scope.lastChild.value;
    complain("");
    go.disabled = true;
    try {
      await save(Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== fact[name])));
    } catch (error) {
      complain(error.message);
    } finally {
      go.disabled = false;
    }
  });
  return form;
}

function select(label, options, chosen) {
  return el(
    "label.field",
    {},
    el("span", {}, label),
    el(
      "select",
      {},
      options.map(([value, words]) => el("option", { value, selected: value === chosen }, words)),
    ),
  );
}
