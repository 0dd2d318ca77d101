// The history of a fact and of the facts that it replaced: one sentence for each change, newest first.
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { moment, text } from "../page/words.js";
import { CATEGORIES } from "./fact_form.js";

/** It is read once: give it a key that changes with the fact. */
export class FactHistory extends Component {
  state = { lines: [] };

  async load() {
    const { items } = await api.get(`/api/facts/${this.props.fact.id}/history`);
    return { lines: told(items) };
  }

  render(_, { lines, trouble }) {
    return html`<${Trouble} ...${trouble} />
      <ol class="fact-history" aria-label=${text("memory.history.title")} hidden=${!lines.length}>
        ${lines.map(([at, words]) => html`<li><time datetime=${at}>${moment(at)}</time><span>${words}</span></li>`)}
        ${lines.length === 1 && html`<li><span>${text("memory.history.unchanged")}</span></li>`}
      </ol>`;
  }
}

/** The changes as [time, sentence]. */
function told(revisions) {
  const before = new Map(); // the last revision of each fact so far
  const lines = revisions.flatMap((revision) => {
    const last = before.get(revision.fact_id);
    before.set(revision.fact_id, revision);
    return sentences(revision, last).map((words) => [revision.at, words]);
  });
  return lines.reverse();
}

function sentences(revision, last) {
  const { action, author, text: words, importance, category, pinned } = revision;
  if (action === "superseded") return [text("memory.history.corrected", { words })];
  if (["accepted", "ended", "excluded", "reopened"].includes(action)) return [text(`memory.history.${action}`)];
  if (action === "made" || action === "proposed") return [text(`memory.history.${author === "person" ? "stated" : "noted"}`, { words })];
  const changes = [];
  if (words !== last?.text) changes.push(text("memory.history.text", { words }));
  if (importance !== last?.importance) changes.push(text("memory.history.importance", { importance }));
  if (category !== last?.category) changes.push(text("memory.history.category", { category: CATEGORIES[category] ?? category }));
  if (pinned !== last?.pinned) changes.push(text(pinned ? "memory.history.pinned" : "memory.history.unpinned"));
  return changes.length ? changes : [text("memory.history.scope")];
}
