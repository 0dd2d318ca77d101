// A summary's sections as lines of text and back, and changes to them as pure functions: nothing given is changed.

import { SECTIONS, sectionLines } from "../page/words.js";

const ITEM_MAX = 400; // characters
const ITEMS_MAX = 40;

const KINDS = new Map(SECTIONS.map(([name, , kind]) => [name, kind]));
export const isLine = (name) => KINDS.get(name) === "line";

export const EMPTY = Object.fromEntries(SECTIONS.map(([name]) => [name, isLine(name) ? "" : []]));

/** A section's items, each on one line. */
export const linesOf = (sections, name) =>
  sectionLines(sections, name).map((line) => line.replace(/\s*\n\s*/g, " ").trim());

/** The section that `lines` say; a line that `known` sections hold is the item it was made from. */
export function sectionOf(name, lines, known = EMPTY) {
  if (isLine(name)) return lines.join(" ");
  const items = new Map(linesOf(known, name).map((line, at) => [line, known[name][at]]));
  return lines.map((line) => items.get(line) ?? (KINDS.get(name) === "options" ? excluded(line) : line));
}

function excluded(line) {
  const [, option, reason] = /^(.+?)(?::\s+|：\s*)(.+)$/u.exec(line) ?? [null, line, ""];
  return { option: option.trim(), reason: reason.trim() };
}

/** The sections with one line in other words, or without it where `next` is null; null when it isn't there. */
export function replaced(sections, name, line, next) {
  const lines = linesOf(sections, name);
  const at = lines.indexOf(line);
  if (at < 0) return null;
  lines.splice(at, 1, ...(next === null ? [] : [next]));
  return { ...sections, [name]: sectionOf(name, lines, sections) };
}

/** The sections with an item of `before` put back where it stood. */
export function restored(sections, name, line, before) {
  if (isLine(name)) return { ...sections, [name]: before[name] };
  const lines = linesOf(sections, name);
  if (lines.includes(line)) return sections;
  const at = linesOf(before, name).indexOf(line);
  const items = [...sections[name]];
  items.splice(at, 0, before[name][at]);
  return { ...sections, [name]: items };
}

/** The lines that come of `theirs` when what was changed from `base` to `mine` is done to it too. */
export function mergedLines(name, base, mine, theirs) {
  if (isLine(name)) return String(mine) === String(base) ? theirs : mine;
  const result = theirs.filter((line) => mine.includes(line) || !base.includes(line));
  mine.forEach((line, at) => {
    if (base.includes(line) || result.includes(line)) return;
    const after = mine.slice(0, at).findLast((one) => result.includes(one)); // the line it was put behind
    result.splice(after === undefined ? 0 : result.indexOf(after) + 1, 0, line);
  });
  return result;
}

/** Why the server would not take these sections, in words; "" when it would. */
export function problemWith(sections) {
  for (const [name, title] of SECTIONS) {
    const items = isLine(name) ? [sections[name]] : sections[name];
    if (items.length > ITEMS_MAX)
      return `${title} has ${items.length} lines, and ${ITEMS_MAX} is the most. Join or leave out some.`;
    const texts = items.flatMap((item) => (typeof item === "string" ? [item] : [item.option, item.reason]));
    const long = texts.map((text) => [...text].length).find((length) => length > ITEM_MAX);
    if (long)
      return `A line of ${title} has ${long} characters, and ${ITEM_MAX} is the most. Shorten it, or split it in two.`;
  }
  return "";
}
