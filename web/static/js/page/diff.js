// The difference between two versions of a text: lines kept, added, removed, or changed in some words.
// All functions are pure.

const ALIKE = 0.4; // a removed and an added line with at least this share of common words count as one changed line
const words = new Intl.Segmenter(undefined, { granularity: "word" });

/** The fewest steps from `before` to `after`, as [kind, item] with kind "kept", "removed" or "added". */
function steps(before, after) {
  const common = Array.from({ length: before.length + 1 }, () => new Array(after.length + 1).fill(0)); // lengths for the remaining items
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i][j] = before[i] === after[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      found.push(["kept", before[i++]]);
      j++;
    } else if (j === after.length || (i < before.length && common[i + 1][j] >= common[i][j + 1]))
      found.push(["removed", before[i++]]);
    else found.push(["added", after[j++]]);
  }
  return found;
}

/** The steps between lines.  For the kind "changed" the item is the list of steps between the words of the line. */
export function lineSteps(before, after) {
  const found = [];
  for (const [kind, line] of steps(before, after)) {
    const other = kind === "added" && found.findIndex(([its, old]) => its === "removed" && alike(old, line));
    if (kind === "added" && other >= 0) found[other] = ["changed", wordSteps(found[other][1], line)];
    else found.push([kind, line]);
  }
  return found;
}

const split = (line) => [...words.segment(line)].map((part) => part.segment);

function wordSteps(before, after) {
  const joined = [];
  for (const [kind, word] of steps(split(before), split(after))) {
    if (joined.at(-1)?.[0] === kind) joined.at(-1)[1] += word;
    else joined.push([kind, word]);
  }
  return joined;
}

function alike(one, other) {
  const meant = (line) => new Set(split(line.toLowerCase()).filter((word) => /[\p{L}\p{N}]/u.test(word)));
  const [a, b] = [meant(one), meant(other)];
  const shared = [...a].filter((word) => b.has(word)).length;
  return shared / Math.max(a.size, b.size, 1) >= ALIKE;
}
