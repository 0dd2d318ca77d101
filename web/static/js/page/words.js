// The page's words: the texts of its catalogue, and times, numbers and names as they are shown.
//
// The server chooses the language and embeds its catalogue (web/texts) in the page.
import { timezone } from "./state.js";

const LANGUAGE = document.documentElement.lang;
const CATALOGUE = JSON.parse(document.getElementById("texts").textContent);

/** The language for Intl, with the region that the browser prefers: "en-GB" writes dates differently from "en-US". */
export const LOCALE = navigator.languages.find((locale) => locale.split("-")[0] === LANGUAGE) ?? LANGUAGE;
const plurals = new Intl.PluralRules(LOCALE);
const figures = new Intl.NumberFormat(LOCALE);
export const number = (value) => figures.format(Math.round(value));
const find = (key) => key.split(".").reduce((entry, name) => (Object.hasOwn(entry ?? {}, name) ? entry[name] : undefined), CATALOGUE);

/** Whether there is a text of this key, for keys that come from the API, such as the codes of errors. */
export const hasText = (key) => find(key) !== undefined;

/**
 * The text of a key such as "page.send", with each `{name}` replaced by `values.name`; numbers are formatted.  A text
 * with plural forms takes the one for `values.count`.  Throws if the key or a value is missing.
 */
export const text = (key, values) => textParts(key, values).join("");

/** The same as a list of children for `el`, so that values can be elements. */
export function textParts(key, values = {}) {
  const entry = find(key);
  const words = entry?.other ? entry[plurals.select(values.count)] : entry;
  if (typeof words !== "string") throw new Error(`The catalogue has no text ${key}.`);
  return words.split(/\{(\w+)\}/).map((part, at) => {
    if (at % 2 === 0) return part;
    if (values[part] === undefined) throw new Error(`The text ${key} needs the value ${part}.`);
    return typeof values[part] === "number" ? number(values[part]) : values[part];
  });
}

// -- times, numbers and names

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

/** The title of a value of a profile, from the names that lead to it. */
export function titleOf(names) {
  const known = (name) => (hasText(`memory.profile.names.${name}`) ? text(`memory.profile.names.${name}`) : name);
  return names.filter((name) => !/^\d+$/.test(name)).map(known).join(", ");
}

/** 128 random bits in hex.  crypto.randomUUID exists only on localhost and with https. */
export function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
