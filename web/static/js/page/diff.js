// The difference between two versions of a text: lines kept, added, removed, or changed in some words.
import "../../vendor/diff.mjs"; // its minified file sets a global name

const { diffArrays, diffWordsWithSpace } = globalThis.Diff;
const ALIKE = 0.4; // the part of their letters that a removed and an added line share if they are one changed line
const intlSegmenter = new Intl.Segmenter(undefined, { granularity: "word" });
const kindOf = ({ added, removed }) => (added ? "added" : removed ? "removed" : "kept");
const letters = (words) => words.match(/[\p{L}\p{N}]/gu)?.length ?? 0;

/** The steps between lines, as [kind, line].  For the kind "changed" there are the steps between words in its place. */
export function lineSteps(before, after) {
  const found = [];
  for (const part of diffArrays(before, after)) {
    for (const line of part.value) {
      const old = part.added && found.find(([kind, other]) => kind === "removed" && wordSteps(other, line));
      if (old) Object.assign(old, ["changed", wordSteps(old[1], line)]);
      else found.push([kindOf(part), line]);
    }
  }
  return found;
}

/** The steps between the words of two lines that are alike, or null. */
function wordSteps(before, after) {
  const parts = diffWordsWithSpace(before, after, { intlSegmenter });
  const kept = parts.filter((part) => kindOf(part) === "kept").map((part) => part.value).join("");
  if (letters(kept) < ALIKE * Math.max(letters(before), letters(after), 1)) return null;
  return parts.map((part) => [kindOf(part), part.value]);
}
