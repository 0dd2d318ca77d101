// Formats times, numbers and names for display.

import { timezone } from "./state.js";
import { LOCALE, number, text } from "./texts.js";

export { number };

// Making a format takes far longer than using it.
const format = (options) => {
  let [zone, made] = [null, null];
  return (iso) => {
    if (zone !== timezone()) made = new Intl.DateTimeFormat(LOCALE, { timeZone: (zone = timezone()), ...options });
    return made.format(new Date(iso));
  };
};

export const clock = format({ hour: "2-digit", minute: "2-digit" });
export const date = format({ day: "numeric", month: "long", year: "numeric" });
export const moment = format({ dateStyle: "long", timeStyle: "short" });
export const dayKey = format({ year: "numeric", month: "2-digit", day: "2-digit" });

const DAY = 86_400_000;

/** "Today", "Yesterday", or the date. */
export function dayName(iso, now = new Date()) {
  const key = dayKey(iso);
  if (key === dayKey(now)) return text("page.today");
  if (key === dayKey(new Date(now.getTime() - DAY))) return text("page.yesterday");
  return date(iso);
}

/** The time if it is today (14:05), else the day. */
export function when(iso) {
  return dayKey(iso) === dayKey(new Date()) ? clock(iso) : dayName(iso);
}

/** What to say of a text that is too long; empty if it is not.  `maxLength` would cut such a text off. */
export function tooLong(words, most) {
  const count = [...words].length - most;
  return count > 0 ? text("page.too_long", { count, most }) : "";
}

/** The beginning of a text, as a label for it. */
export function shortened(words, most = 60) {
  const letters = [...words];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : words;
}

export const speaker = ({ name, role }) => name || text(`page.speakers.${role}`);

/** The name of a model; the built-in one has another in the API. */
export const modelName = (name) => (name === "recap-extractive" ? text("page.builtin_model") : name);

/** The sections of a summary in order, as [name, title, kind]; the kind is "line", "items" or "options". */
export const SECTIONS = JSON.parse(document.body.dataset.sections).map(([name, kind]) => {
  return [name, text(`memory.sections.${name}`), kind];
});

/** The items of a section as lines of text, whatever the section's kind. */
export function sectionLines(sections, name) {
  const value = sections?.[name] ?? [];
  if (typeof value === "string") return value ? [value] : [];
  return value.map((item) => (typeof item === "string" ? item : [item.option, item.reason].filter(Boolean).join(": ")));
}

/** 128 random bits in hex.  crypto.randomUUID exists only on localhost and with https. */
export function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
