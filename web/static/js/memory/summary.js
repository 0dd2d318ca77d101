// The summary of the chat on display: its sections, its state, and forms to correct it.
//
// Guarantee: the old summary stays until the new one has arrived, and typed text is never overwritten: newer versions
// are not shown while the person edits.  A correction of one item is applied to the newest version.

import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { announce, button, el } from "../page/dom.js";
import { icon } from "../page/icons.js";
import { rowKeys } from "../page/rows.js";
import { EMPTY, linesOf, problemWith, replaced } from "./sections.js";
import { itemForm, summaryForm } from "./summary_form.js";
import { openVersions } from "./versions.js";
import { SECTIONS, plural, shortened, when } from "../page/words.js";

const CHANGES_TRIED = 3;
const AUTHORS = { person: "by you", rollback: "brought back" };

/**
 * `changed(summary)` is called with the summary after the person changed it, `refresh()` to request an update.
 * Draw with {sessionId, temporary, summary, known}; `summary` is null if the chat has none, or before it is `known`.
 */
export function summaryView({ changed, refresh }) {
  const about = el("p.memory-about");
  const standing = el("div.summary-standing");
  const body = el("div.summary-body");
  const editAll = button("Edit", () => openForm(), { kind: "quiet", "aria-label": "Edit the summary" });
  const versions = button("Versions", () => openVersions(view.sessionId, view.summary, changed), {
    kind: "quiet",
    "aria-label": "Versions of the summary",
    title: "Earlier versions, and what changed",
  });
  const tools = el("div.memory-tools", {}, editAll, versions);
  const hint = el("p.facts-hint", { id: "summary-hint" }, "E edits, Delete forgets");
  const element = el(
    "section.memory-part",
    { "aria-labelledby": "summary-heading" },
    el("header.memory-head", {}, el("h3", { id: "summary-heading" }, "Summary"), tools),
    about,
    standing,
    body,
  );

  const parked = new Map(); // by session: {open, nodes}: open forms, kept while another chat is shown
  let view = { sessionId: null, temporary: false, summary: null, known: false };
  let drawn = null; // the sections that `body` shows, as JSON
  let open = nothingOpen();
  const rows = () => [...body.querySelectorAll(".summary-item")];
  const settle = rowKeys(body, rows, {
    keys: { e: editItem, Delete: forgetItem, Backspace: forgetItem },
    open: (row) => open.rows.has(row),
  });

  function draw(next) {
    if (next.sessionId !== view.sessionId) exchange(next.sessionId);
    view = next;
    const { summary } = view;
    editAll.hidden = !summary || open.whole;
    versions.hidden = !summary?.latest || open.whole;
    about.replaceChildren(...described(view, retry));
    drawStanding(summary);
    if (!open.whole && !open.rows.size) drawSections(summary?.latest?.sections ?? EMPTY);
  }

  function exchange(sessionId) {
    if (open.whole || open.rows.size) parked.set(view.sessionId, { open, nodes: [...body.childNodes] });
    const back = parked.get(sessionId);
    parked.delete(sessionId);
    open = back?.open ?? nothingOpen();
    drawn = null;
    if (back) body.replaceChildren(...back.nodes);
  }

  function drawStanding(summary) {
    const [text, action] = trouble(summary);
    if (standing.dataset.text === text) return; // screen readers would repeat it, and its button would lose focus
    standing.dataset.text = text;
    standing.replaceChildren(
      ...(text ? [el("div.notice", { role: "alert" }, el("p", {}, text), button(action, retry))] : []),
    );
    standing.firstChild?.classList.toggle("error", summary.state === "failed");
  }

  async function retry({ target }) {
    target.disabled = true;
    try {
      await refresh();
    } catch (error) {
      standing.dataset.text = error.message;
      standing.replaceChildren(
        el("div.notice.error", { role: "alert" }, el("p", {}, error.message), button("Try again", retry)),
      );
    } finally {
      target.disabled = false;
    }
  }

  function drawSections(sections) {
    const text = JSON.stringify(sections);
    if (text === drawn) return;
    drawn = text;
    const at = rows().findIndex((row) => row.contains(document.activeElement));
    const parts = SECTIONS.map(([name, title]) => sectionPart(name, title, linesOf(sections, name))).filter(Boolean);
    body.replaceChildren(...parts, parts.length ? hint : "");
    settle();
    if (at >= 0) (rows()[Math.min(at, rows().length - 1)] ?? editAll).focus({ preventScroll: true });
  }

  function sectionPart(name, title, lines) {
    if (!lines.length) return null;
    const list = el("ul", { "aria-label": title });
    list.append(...lines.map((line) => item(name, line)));
    return el("div.summary-section", {}, el("h4", {}, title), list);
  }

  // -- one item

  function item(name, line) {
    const row = el("li.summary-item", {
      tabIndex: -1,
      dataset: { section: name, line },
      "aria-describedby": "summary-hint",
      "aria-keyshortcuts": "E Delete",
    });
    fillItem(row);
    return row;
  }

  function fillItem(row) {
    const { line } = row.dataset;
    const control = (name, title, deed) => {
      const about = { kind: "icon", title, "aria-label": `${title}: ${shortened(line)}` };
      return button(icon(name), () => deed(row), about);
    };
    const actions = [control("edit", "Edit", editItem), control("forget", "Forget", forgetItem)];
    row.replaceChildren(el("span.grow", {}, line), el("span.row-actions", {}, actions));
  }

  function editItem(row) {
    if (open.rows.has(row)) return row.querySelector("textarea").focus();
    const mine = open;
    mine.rows.add(row);
    const { section, line } = row.dataset;
    const leave = () => {
      mine.rows.delete(row);
      fillItem(row);
      draw(view);
      settle();
      (row.isConnected ? row : rows()[0])?.focus();
    };
    const save = async (next) => {
      if (next === line) return leave();
      const summary = await amend((sections) => {
        const changes = replaced(sections, section, line, next || null);
        if (changes) return changes;
        throw new Error("The summary was updated and no longer has this item. Cancel to see the new version.");
      });
      mine.rows.delete(row);
      changed(summary);
      rows().find((one) => one.dataset.line === next)?.focus();
    };
    row.replaceChildren(itemForm(line, { save, cancel: leave }));
    settle();
    row.querySelector("textarea").focus();
  }

  async function forgetItem(row) {
    const { section, line } = row.dataset;
    row.querySelector(".trouble")?.remove();
    if (!(await confirmed("Forget this item?", `“${line}” leaves the summary. Its earlier versions keep it.`, "Forget"))) return;
    try {
      changed(await amend((sections) => replaced(sections, section, line, null) ?? sections));
      announce("Forgotten");
    } catch (error) {
      row.append(el("p.trouble", { role: "alert" }, error.message));
    }
  }

  /** Apply `change` to the newest sections and store the result.  Passes on errors of `change`. */
  async function amend(change) {
    let { sessionId, summary } = view;
    for (let left = CHANGES_TRIED; ; left--) {
      const sections = change(summary.latest?.sections ?? EMPTY);
      const problem = problemWith(sections);
      if (problem) throw new Error(problem);
      try {
        return await api.put(api.summaryPath(sessionId), { sections, expected_version: summary.latest?.version ?? 0 });
      } catch (error) {
        if (error.status !== 409 || left === 0) throw error;
        summary = await api.get(api.summaryPath(sessionId));
      }
    }
  }

  // -- the whole

  function openForm() {
    const mine = open;
    const close = () => {
      mine.whole = false;
      mine.rows.clear();
      drawn = null;
      draw(view);
      if (mine === open) editAll.focus();
    };
    const form = summaryForm(view.summary, {
      cancel: close,
      saved: (summary) => {
        close();
        changed(summary);
        announce(`Saved as version ${summary.latest.version}`);
      },
    });
    mine.whole = true;
    body.replaceChildren(form);
    draw(view);
    form.querySelector("textarea").focus();
  }

  /** Drop everything of this person, because another person's memory is shown. */
  function reset() {
    parked.clear();
    open = nothingOpen();
    drawn = null;
    draw({ sessionId: null, temporary: false, summary: null, known: false });
  }

  return { element, draw, reset };
}

/** The open forms: that of the whole summary, or those of some items. */
const nothingOpen = () => ({ whole: false, rows: new Set() });

/** The line under the heading: the version of the summary and its state. */
function described({ temporary, summary, known }, update) {
  if (temporary) return ["Nothing of this chat is kept."];
  if (!known) return [];
  const { latest, state, error, job_id: job, message_count: said } = summary ?? {};
  const parts = latest ? [`Version ${latest.version}`, when(latest.created_at), AUTHORS[latest.author]] : [];
  if (state === "updating") {
    parts.push(el("span.dots", {}, latest ? "updating" : "A summary is being written"));
  } else if (state === "pending" && !job) {
    parts.push(`${plural(said - (latest?.through ?? 0), "message")} behind`);
    parts.push(button("Update now", update, { kind: "link" }));
  } else if (state === "pending" && !error) {
    parts.push(latest ? "updates when you pause" : "A summary appears when you pause.");
  } else if (!latest && !error) {
    parts.push("A summary appears after a reply or two.");
  }
  return parts.filter(Boolean).flatMap((part, at) => (at ? [" · ", part] : [part]));
}

/** The problem with the summary and the label of a button, as [text, label]; ["", ""] without a problem. */
function trouble(summary) {
  if (!summary) return ["", ""];
  const { state, error, latest } = summary;
  const kept = latest
    ? `Version ${latest.version} stays, and newer messages are sent word for word.`
    : "The messages are kept, and are sent word for word.";
  if (state === "failed") return [`The summary could not be updated. ${error} ${kept}`, "Try again"];
  if (state === "pending" && error) {
    return [`The last update failed and will be retried automatically. ${error} ${kept}`, "Try again now"];
  }
  return ["", ""];
}
