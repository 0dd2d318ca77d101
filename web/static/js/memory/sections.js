// Converts a summary's sections to lines of text and back, and changes them.  All functions are pure.
import { text } from "../page/words.js";

const ITEM_MAX = 400; // characters
const ITEMS_MAX = 40;

/** The sections in order, as [name, title, kind]; the kind is "line", "items" or "options". */
export const SECTIONS = JSON.parse(document.body.dataset.sections).map(([name, kind]) => {
  return [name, text(`memory.sections.${name}`), kind];
});
const KINDS = new Map(SECTIONS.map(([name, , kind]) => [name, kind]));
const isLine = (name) => KINDS.get(name) === "line";
export const EMPTY = Object.fromEntries(SECTIONS.map(([name]) => [name, isLine(name) ? "" : []]));

/** A section's items, each on one line. */
export function linesOf(sections, name) {
  const words = (item) => (typeof item === "string" ? item : [item.option, item.reason].filter(Boolean).join(": "));
  const lines = [sections[name] ?? []].flat().map(words);
  return lines.map((line) => line.replace(/\s*\n\s*/g, " ").trim()).filter(Boolean);
}

/** All sections as [title, lines]. */
export const partsOf = (sections) => SECTIONS.map(([name, title]) => [title, linesOf(sections, name)]);

/** The section with these `lines`.  A line that is in one of the `known` sections becomes that section's item. */
export function sectionOf(name, lines, known = EMPTY) {
  if (isLine(name)) return lines.join(" ");
  const items = new Map(linesOf(known, name).map((line, at) => [line, known[name][at]]));
  return lines.map((line) => items.get(line) ?? (KINDS.get(name) === "options" ? excluded(line) : line));
}

function excluded(line) {
  const [, option, reason] = /^(.+?)(?::\s+|：\s*)(.+)$/u.exec(line) ?? [null, line, ""];
  return { option: option.trim(), reason: reason.trim() };
}

/** The sections with one line replaced by `next`, or removed if `next` is null.  Returns null if it is not there. */
export function replaced(sections, name, line, next) {
  const lines = linesOf(sections, name);
  const at = lines.indexOf(line);
  if (at < 0) return null;
  lines.splice(at, 1, ...(next === null ? [] : [next]));
  return { ...sections, [name]: sectionOf(name, lines, sections) };
}

/** Merge: the lines of `theirs` with the changes from `base` to `mine` applied. */
export function mergedLines(name, base, mine, theirs) {
  if (isLine(name)) return String(mine) === String(base) ? theirs : mine;
  const result = theirs.filter((line) => mine.includes(line) || !base.includes(line));
  mine.forEach((line, at) => {
    if (base.includes(line) || result.includes(line)) return;
    const after = mine.slice(0, at).findLast((one) => result.includes(one)); // the line after which it was inserted
    result.splice(after === undefined ? 0 : result.indexOf(after) + 1, 0, line);
  });
  return result;
}

/** Why the server would refuse these sections, or "" if it would accept them. */
export function problemWith(sections) {
  for (const [name, title] of SECTIONS) {
    const items = isLine(name) ? [sections[name]] : sections[name];
    const counts = { section: title, length: items.length, most: ITEMS_MAX };
    if (items.length > ITEMS_MAX) return text("memory.summary_form.many_lines", counts);
    const texts = items.flatMap((item) => (typeof item === "string" ? [item] : [item.option, item.reason]));
    const length = Math.max(0, ...texts.map((words) => [...words].length));
    if (length > ITEM_MAX) return text("memory.summary_form.long_line", { section: title, length, most: ITEM_MAX });
  }
  return "";
}
