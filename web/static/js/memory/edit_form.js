// A form that corrects something in its place. Enter saves, Escape cancels. Guarantee: the typed text stays in the form until it is stored.
import { isEnter } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { text } from "../page/words.js";

/**
 * The children are the fields.  `save(values)` gets their values by name.  It resolves when they are stored, and throws
 * on failure; the form shows the error.  With `manyLines`, Enter begins a new line, and Ctrl+Enter saves.
 */
export class EditForm extends Component {
  form = createRef();

  componentDidMount() {
    const box = this.form.current.querySelector("textarea");
    box.focus({ preventScroll: true });
    box.setSelectionRange(box.value.length, box.value.length);
    this.form.current.scrollIntoView({ block: "nearest" }); // a margin of it keeps headings that stay in view off it
  }

  submit = async (event) => {
    event.preventDefault();
    if (this.state.busy) return;
    await this.attempt(() => this.props.save(Object.fromEntries(new FormData(this.form.current))));
  };

  keys = (event) => {
    const saves = this.props.manyLines ? event.key === "Enter" && (event.ctrlKey || event.metaKey) : isEnter(event);
    if (event.key === "Escape") {
      event.stopPropagation(); // otherwise the dialog around the form would close too
      event.preventDefault();
      this.props.cancel();
    } else if (saves && event.target.matches("textarea")) {
      event.preventDefault();
      this.form.current.requestSubmit();
    }
  };

  render({ action = text("page.save"), cancel, children, ...rest }, { trouble }) {
    return html`<form noValidate ...${rest} ref=${this.form} onSubmit=${this.submit} onKeyDown=${this.keys}>
        ${children}
        <div class="form-foot">
          <${Trouble} ...${trouble} />
          <div class="row end">
            <button type="button" onClick=${cancel}>${text("page.cancel")}</button>
            <button type="submit" class="primary">${action}</button>
          </div>
        </div>
      </form>`;
  }
}

/** Typed text as one line. */
export const oneLine = (words) => words.trim().replace(/\s*\n\s*/g, " ");
