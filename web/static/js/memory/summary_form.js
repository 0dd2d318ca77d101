// The form for the whole summary: a box for each section, with one item on each line.
// Guarantee: typed text is never lost.  If a newer version exists on saving, the changes can be merged into it.
import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { Component, Trouble, html } from "../page/html.js";
import { EditForm } from "./edit_form.js";
import { EMPTY, SECTIONS, linesOf, mergedLines, problemWith, sectionOf } from "./sections.js";
import { text } from "../page/words.js";

const HINTS = { topic: "", excluded: text("memory.summary_form.options") };

/** `saved(summary)` is called with the stored summary, `cancel()` if the person cancels. */
export class SummaryForm extends Component {
  path = api.summaryPath(this.props.summary.session_id);
  state = this.begin(this.props.summary.latest ?? { version: 0, sections: EMPTY }, (name, lines) => lines);

  /** The state with the sections of a version as `change(name, lines)` makes them. */
  begin({ version, sections }, change) {
    const texts = SECTIONS.map(([name]) => [name, change(name, linesOf(sections, name)).join("\n")]);
    return { version, base: sections, texts: Object.fromEntries(texts), newer: null };
  }

  lines(name) {
    const lines = this.state.texts[name].split("\n").map((line) => line.trim());
    return lines.filter(Boolean);
  }

  save = async () => {
    const { base, version } = this.state;
    const sections = Object.fromEntries(SECTIONS.map(([name]) => [name, sectionOf(name, this.lines(name), base)]));
    const problem = problemWith(sections);
    if (problem) throw new Error(problem);
    try {
      this.props.saved(await api.put(this.path, { sections, expected_version: version }));
    } catch (error) {
      if (error.status !== 409) throw error;
      this.setState({ newer: (await api.get(this.path)).latest });
    }
  };

  merge = () => {
    const { base, newer } = this.state;
    const merge = (name, theirs) => mergedLines(name, linesOf(base, name), this.lines(name), theirs);
    this.setState({ ...this.begin(newer, merge), merged: true });
  };

  leave = async () => {
    const { base } = this.state;
    const untouched = SECTIONS.every(([name]) => this.lines(name).join("\n") === linesOf(base, name).join("\n"));
    const words = ["title", "means", "action"].map((part) => text(`memory.summary_form.discard_${part}`));
    if (untouched || (await confirmed(...words))) this.props.cancel();
  };

  render(_, { version, texts, newer, merged }) {
    const write = ({ target }) => this.setState({ texts: { ...texts, [target.name]: target.value } });
    const label = text("memory.summary.edit");
    return html`<${EditForm} class="summary-form" aria-label=${label} manyLines save=${this.save} cancel=${this.leave}>
        ${SECTIONS.map(
          ([name, title]) => html`<label class="field">
              <span>${title} <span class="hint">${HINTS[name] ?? text("memory.summary_form.one_a_line")}</span></span>
              <textarea name=${name} aria-label=${title} rows=${texts[name].split("\n").length} value=${texts[name]} onInput=${write} />
            </label>`,
        )}
        <${Trouble}
          message=${newer && text("memory.summary_form.overtaken", { version, newer: newer.version })}
          action=${newer && text("memory.summary_form.merge", { newer: newer.version })}
          again=${this.merge}
        />
        <${Trouble} kind="" message=${merged && !newer && text("memory.summary_form.merged", { version })} />
      <//>`;
  }
}
