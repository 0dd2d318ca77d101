// Shows two summaries side by side by section.  Differences are marked with a sign as well as a colour.

import { el } from "../page/dom.js";
import { SECTIONS, sectionLines } from "../page/words.js";

/**
 * `left` and `right` are `{title, about, sections}`; `sections` is null if there is no summary.  Items only on the left
 * are marked as left out, items only on the right as new.
 */
export function sideBySide(left, right) {
  return el(
    "div.compare",
    {},
    el("div.compare-row", {}, head(left), head(right)),
    SECTIONS.map(([name, label]) => {
      const before = sectionLines(left.sections, name);
      const after = sectionLines(right.sections, name);
      if (!before.length && !after.length) return null;
      const equal = before.map(same).join("\n") === after.map(same).join("\n"); // small screens then show one of them
      return el(
        "section",
        { "aria-label": label },
        el("h4", {}, label),
        el(
          `div.compare-row${equal ? ".equal" : ""}`,
          {},
          column(before, after, {
            tag: "del",
            sign: "−",
            said: "left out",
            title: equal ? "The same in both" : left.title,
          }),
          column(after, before, { tag: "ins", sign: "+", said: "new", title: right.title }),
        ),
      );
    }),
  );
}

const head = ({ title, about }) => el("div.compare-head", {}, el("h3", {}, title), el("p.muted.small", {}, about));

function column(lines, others, { tag, sign, said, title }) {
  const known = new Set(others.map(same));
  const item = (line) =>
    known.has(same(line))
      ? el("li", {}, line)
      : el(
          "li",
          {},
          el(
            tag,
            {},
            el("span.sign", { "aria-hidden": "true" }, sign),
            el("span.visually-hidden", {}, `${said}: `),
            line,
          ),
        );
  const list = lines.length ? el("ul", {}, lines.map(item)) : el("p.muted.small", {}, "nothing");
  return el("div.compare-cell", {}, el("p.compare-side.muted.small", { "aria-hidden": "true" }, title), list);
}

/** A key for comparing lines, which ignores spacing, case and the full stop. */
const same = (line) =>
  line
    .toLowerCase()
    .replace(/\s+/g, " ")
    .replace(/[.\s]+$/, "");
