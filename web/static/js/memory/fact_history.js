// The history of a fact: one sentence for each change, newest first.

import * as api from "../page/api.js";
import { el } from "../page/dom.js";
import { moment } from "../page/words.js";

/** A list of the changes to a fact and to the facts that it replaced.  Throws ApiError. */
export async function factHistory(fact) {
  const { items } = await api.get(`/api/facts/${fact.id}/history`);
  const lines = [];
  const before = new Map(); // the last revision of each fact so far
  for (const revision of items) {
    for (const words of sentences(revision, before.get(revision.fact_id))) lines.push([revision.at, words]);
    before.set(revision.fact_id, revision);
  }
  return el(
    "ol.fact-history",
    { "aria-label": "How this fact changed" },
    lines.reverse().map(([at, words]) => el("li", {}, el("time", { dateTime: at }, moment(at)), el("span", {}, words))),
    lines.length === 1 && el("li", {}, el("span", {}, "Not changed since.")),
  );
}

function sentences(revision, last) {
  if (revision.action === "made")
    return [`${revision.author === "person" ? "You stated" : "Noted"}: “${revision.text}”`];
  if (revision.action === "superseded") return [`A later message corrected “${revision.text}”`];
  const changes = [];
  if (revision.text !== last?.text) changes.push(`You changed it to “${revision.text}”`);
  if (revision.importance !== last?.importance) changes.push(`You set its importance to ${revision.importance}`);
  if (revision.category !== last?.category) changes.push(`You filed it under ${revision.category}`);
  if (revision.pinned !== last?.pinned) changes.push(revision.pinned ? "You pinned it" : "You unpinned it");
  return changes.length ? changes : ["You changed where it holds"];
}
