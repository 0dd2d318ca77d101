// Times, figures and names as people read them.

import { timezone } from "./state.js";

const format = (options) => (iso) => new Intl.DateTimeFormat(undefined, { timeZone: timezone(), ...options }).format(new Date(iso));

export const clock = format({ hour: "2-digit", minute: "2-digit" });
export const date = format({ day: "numeric", month: "long", year: "numeric" });
export const moment = format({ dateStyle: "long", timeStyle: "short" });
export const dayKey = format({ year: "numeric", month: "2-digit", day: "2-digit" });

const DAY = 86_400_000;

/** "Today", "Yesterday", or the date. */
export function dayName(iso, now = new Date()) {
  const key = dayKey(iso);
  if (key === dayKey(now)) return "Today";
  if (key === dayKey(new Date(now.getTime() - DAY))) return "Yesterday";
  return date(iso);
}

/** A time of today as 14:05, any other as its day. */
export function when(iso) {
  return dayName(iso) === "Today" ? clock(iso) : dayName(iso);
}

export const number = (value) => new Intl.NumberFormat().format(Math.round(value));
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** The beginning of a text, to name it by. */
export function shortened(text, most = 60) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

/** The summary's sections in order, as the server lists them: [name, title, kind], the kind being one of "line",
 * "items" and "options". */
export const SECTIONS = JSON.parse(document.body.dataset.sections);

/** A section's items as lines of text, whatever their shape. */
export function sectionLines(sections, name) {
  const value = sections?.[name] ?? [];
  if (typeof value === "string") return value ? [value] : [];
  return value.map((item) => (typeof item === "string" ? item : item.reason ? `${item.option}: ${item.reason}` : item.option));
}

/** 128 random bits; crypto.randomUUID is missing where the page is not served from localhost or over https. */
export function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
