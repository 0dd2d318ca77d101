// Forms to edit the summary: a box for one item, or a box for each section with one item on each line.
// Guarantee: typed text is never lost.  If a newer version exists on saving, the changes can be merged into it.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { button, el, isEnter } from "../page/dom.js";
import { EMPTY, isLine, linesOf, mergedLines, problemWith, sectionOf } from "./sections.js";
import { SECTIONS } from "../page/words.js";

const HINTS = { topic: "", excluded: "one a line, as “option: reason”" };

/** `saved(summary)` is called with the stored summary, `cancel()` if the person cancels. */
export function summaryForm(summary, { cancel, saved }) {
  const path = api.summaryPath(summary.session_id);
  let base = summary.latest?.sections ?? EMPTY;
  let version = summary.latest?.version ?? 0;
  const boxes = new Map(SECTIONS.map(([name, title]) => [name, el("textarea", { "aria-label": title, name })]));
  const trouble = el("div.summary-trouble", { role: "alert" });
  const save = el("button.primary", { type: "submit" }, "Save");
  const form = el(
    "form.summary-form",
    { noValidate: true, "aria-label": "Edit the summary" },
    SECTIONS.map(([name, title]) =>
      el(
        "label.field",
        {},
        el("span", {}, title, " ", el("span.hint", {}, HINTS[name] ?? "one a line")),
        boxes.get(name),
      ),
    ),
    el("div.summary-form-foot", {}, trouble, el("div.row.end", {}, button("Cancel", leave), save)),
  );
  for (const [name, box] of boxes) write(box, linesOf(base, name));

  function write(box, lines) {
    box.value = lines.join("\n");
    box.rows = Math.min(12, Math.max(isLine(box.name) ? 2 : 1, lines.length + 1));
  }

  const lines = (name) =>
    boxes
      .get(name)
      .value.split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  const written = () => Object.fromEntries(SECTIONS.map(([name]) => [name, sectionOf(name, lines(name), base)]));
  const untouched = () => SECTIONS.every(([name]) => lines(name).join("\n") === linesOf(base, name).join("\n"));

  async function leave() {
    if (
      untouched() ||
      (await confirmed(
        "Discard your changes?",
        "What you typed here is not stored. The summary stays as it was.",
        "Discard",
      ))
    )
      cancel();
  }

  function complain(...nodes) {
    trouble.replaceChildren(...(nodes.length ? [el("div.notice.error", {}, ...nodes)] : []));
  }

  async function send() {
    const sections = written();
    const problem = problemWith(sections);
    if (problem) return complain(problem);
    complain();
    save.disabled = true;
    try {
      saved(await api.put(path, { sections, expected_version: version }));
    } catch (error) {
      if (error.status === 409) await explainConflict();
      else complain(error.message);
    } finally {
      save.disabled = false;
    }
  }

  async function explainConflict() {
    try {
      const { latest } = await api.get(path);
      const text =
        `The summary was updated to version ${latest.version} while you wrote; you began with version ${version}. ` +
        "Nothing was stored, and nothing you typed is lost.";
      complain(
        el("p", {}, text),
        button(`Bring my changes into version ${latest.version}`, () => bringInto(latest)),
      );
    } catch (error) {
      complain(error.message);
    }
  }

  function bringInto(latest) {
    for (const [name, box] of boxes)
      write(box, mergedLines(name, linesOf(base, name), lines(name), linesOf(latest.sections, name)));
    base = latest.sections;
    version = latest.version;
    complain(el("p", {}, `This is version ${version} with your changes. Look it over, then save.`));
    boxes.get(SECTIONS[0][0]).focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!save.disabled) send();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault(); // otherwise Escape would close the confirmation that it opens
      event.stopPropagation();
      leave();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  return form;
}

/** A form for one item.  `save(line)` resolves when it is stored, and throws on failure. */
export function itemForm(line, { save, cancel }) {
  const box = el("textarea", { value: line, rows: 2, "aria-label": "The item" });
  const trouble = el("p.trouble", { role: "alert", hidden: true });
  const go = el("button.primary", { type: "submit" }, "Save");
  const form = el("form.item-form", { noValidate: true }, box, trouble);
  form.append(el("div.row.end", {}, button("Cancel", cancel), go));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = trouble.hidden = true;
    try {
      await save(box.value.trim().replace(/\s*\n\s*/g, " "));
    } catch (error) {
      trouble.textContent = error.message;
      trouble.hidden = false;
    } finally {
      go.disabled = false;
    }
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      cancel();
    } else if (event.target === box && isEnter(event)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  return form;
}
