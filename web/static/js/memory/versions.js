// All versions of a summary, newest first: the changes of each, the changes since, and a button to restore it.

import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { lineSteps } from "../page/diff.js";
import { announce, arrowKeys, button, el } from "../page/dom.js";
import { EMPTY, linesOf } from "./sections.js";
import { SECTIONS, clock, dayName, modelName, moment, number, plural } from "../page/words.js";

const SIGNS = { added: "+", removed: "−", changed: "~", kept: "" };
const NAMES = { added: "Added: ", removed: "Removed: ", changed: "Changed: ", kept: "" };

/** `changed(summary)` is called with the summary after a version was restored. */
export function openVersions(sessionId, summary, changed) {
  const path = api.summaryPath(sessionId);
  const view = versionsView(path, summary.head_version, changed);
  view.load();
  return openDialog("Versions of the summary", () => view.element, { wide: true });
}

/** `inReplies`: the version that prompts contain. */
function versionsView(path, inReplies, changed) {
  const list = el("ul.version-list", { "aria-label": "Versions, newest first" });
  const earlier = button("Show earlier versions", () => load(), { hidden: true });
  const detail = el("section.version-detail", { "aria-label": "The version that is chosen", tabIndex: 0 });
  const trouble = el("div", { role: "alert" });
  const side = el("div.version-side", {}, list, earlier);
  const element = el("div.versions", {}, side, el("div.grow", {}, trouble, detail));
  const rows = () => [...list.querySelectorAll("button")];
  const settle = arrowKeys(list, rows);
  list.addEventListener("focusin", (event) => choose(Number(event.target.dataset.version)));

  let versions = []; // newest first, without gaps
  let cursor; // undefined: nothing is loaded; null: all are
  let chosen = null;
  let against = "before"; // or "newest"

  async function load() {
    earlier.disabled = true;
    try {
      const page = await api.get(`${path}/versions`, { limit: 50, cursor });
      versions.push(...page.items);
      cursor = page.next_cursor;
      trouble.replaceChildren();
      drawList();
      draw(chosen ?? versions[0].version);
    } catch (error) {
      complain(error, load);
    }
    earlier.disabled = false;
    earlier.hidden = !cursor;
  }

  function complain(error, again) {
    trouble.replaceChildren(
      el("div.notice.error", {}, el("p", {}, error.message), again && button("Try again", again)),
    );
  }

  function drawList() {
    list.replaceChildren(...versions.map((version) => el("li", {}, row(version))));
  }

  function row(version) {
    const newest = version === versions[0];
    const sent = { title: "Replies are written with this version and all that was said since" };
    const head = el("span.row", {}, el("strong", {}, `Version ${version.version}`));
    if (newest) head.append(el("span.badge", {}, "newest"));
    else if (version.version === inReplies) head.append(el("span.badge", sent, "in replies"));
    const made = `${dayName(version.created_at)} ${clock(version.created_at)}, ${author(version)}`;
    const about = { kind: "version", dataset: { version: version.version } };
    return button([head, el("span.small.muted", {}, made)], () => choose(version.version), about);
  }

  const choose = (wanted) => wanted !== chosen && draw(wanted);

  function draw(wanted) {
    chosen = wanted;
    for (const row of rows()) row.setAttribute("aria-current", String(Number(row.dataset.version) === chosen));
    settle();
    const at = versions.findIndex((version) => version.version === chosen);
    const version = versions[at];
    const newest = at === 0;
    const before = versions[at + 1];
    const since = against === "newest" && !newest;
    const [from, to] = since ? [version, versions[0]] : [before, version];
    let title = before ? `What version ${wanted} changed` : `Version ${wanted}`;
    if (since) title = `From version ${wanted} to the newest, ${to.version}`;
    detail.replaceChildren(
      el("h3", {}, title),
      el("p.small.muted", {}, described(version)),
      newest ? "" : tools(version, since),
      ...differences(from?.sections ?? EMPTY, to.sections),
    );
    detail.scrollTop = 0;
  }

  function tools(version, since) {
    const compare = (name, label) => {
      const show = () => {
        against = name;
        draw(chosen);
        detail.querySelector('[aria-pressed="true"]').focus();
      };
      return button(label, show, { "aria-pressed": String(since === (name === "newest")) });
    };
    return el(
      "div.row.version-tools",
      {},
      compare("before", "Against the one before"),
      compare("newest", "Against the newest"),
      button("Bring this version back", () => bringBack(version)),
    );
  }

  async function bringBack({ version }) {
    const newest = versions[0].version;
    const text =
      `It becomes version ${newest + 1}, and replies use it from the next message on. ` +
      `Version ${newest} stays in this list. Messages after the restored version are summarised again.`;
    if (!(await confirmed(`Bring version ${version} back?`, text, "Bring it back"))) return;
    try {
      const summary = await api.post(`${path}/rollback`, { version });
      inReplies = summary.head_version;
      changed(summary);
      versions = [];
      cursor = undefined;
      chosen = null;
      await load();
      rows()[0]?.focus();
      announce(`Version ${version} is back, as version ${summary.latest.version}`);
    } catch (error) {
      complain(error);
    }
  }

  return { element, load };
}

function author({ author: who, model, restores }) {
  if (who === "person") return "by you";
  return who === "rollback" ? `version ${restores} brought back` : `by ${modelName(model)}`;
}

function described(version) {
  const made = `${moment(version.created_at)}, ${author(version)}`;
  const parts = [made, `covers ${plural(version.through, "message")}`, `${number(version.tokens)} tokens`];
  if (version.prompt) parts.push(`prompt ${version.prompt}`);
  return parts.join(" · ");
}

/** What differs between two summaries, as a list for each section. */
export function differences(before, after) {
  const parts = SECTIONS.flatMap(([name, title]) => {
    const found = lineSteps(linesOf(before, name), linesOf(after, name));
    return found.length ? [el("h4", {}, title), el("ul.differences", { "aria-label": title }, found.map(line))] : [];
  });
  const same = JSON.stringify(before) === JSON.stringify(after);
  return [same && el("p.notice", {}, "No difference."), ...parts].filter(Boolean);
}

function line([kind, item]) {
  const mark = { added: "ins", removed: "del", kept: "span" };
  const words = kind === "changed" ? item.map(([its, text]) => el(mark[its], {}, text)) : el(mark[kind], {}, item);
  const sign = el("span.sign", { "aria-hidden": "true" }, SIGNS[kind]);
  return el(`li.${kind}`, {}, sign, el("span", {}, el("span.visually-hidden", {}, NAMES[kind]), words));
}
