// The history of a fact and of the facts that it replaced: one sentence for each change, newest first.

import * as api from "../page/api.js";
import { Component, html } from "../page/html.js";
import { moment } from "../page/words.js";

export class FactHistory extends Component {
  state = { lines: [], trouble: "" };

  componentDidMount() {
    this.load();
  }

  componentDidUpdate({ fact }) {
    if (JSON.stringify(fact) !== JSON.stringify(this.props.fact)) this.load();
  }

  async load() {
    try {
      const { items } = await api.get(`/api/facts/${this.props.fact.id}/history`);
      this.setState({ lines: told(items), trouble: "" });
    } catch (error) {
      this.setState({ trouble: error.message });
    }
  }

  render(_, { lines, trouble }) {
    if (trouble) return html`<p class="trouble" role="alert">${trouble}</p>`;
    return html`
      <ol class="fact-history" aria-label="How this fact changed" hidden=${!lines.length}>
        ${lines.map(([at, words]) => html`<li><time datetime=${at}>${moment(at)}</time><span>${words}</span></li>`)}
        ${lines.length === 1 && html`<li><span>Not changed since.</span></li>`}
      </ol>
    `;
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
