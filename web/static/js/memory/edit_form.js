// A form that corrects something in its place.  Enter saves, Escape cancels.
// Guarantee: the typed text stays in the form until it is stored.

import { isEnter } from "../page/dom.js";
import { Component, createRef, html } from "../page/html.js";

/**
 * The children are the fields.  `save(values)` gets their values by name.  It resolves when they are stored, and throws
 * on failure; the form shows the error.
 */
export class EditForm extends Component {
  form = createRef();
  state = { trouble: "" };

  componentDidMount() {
    this.form.current.querySelector("textarea").focus();
  }

  submit = async (event) => {
    event.preventDefault();
    if (this.saving) return;
    this.saving = true;
    this.setState({ trouble: "" });
    try {
      await this.props.save(Object.fromEntries(new FormData(this.form.current)));
    } catch (error) {
      this.setState({ trouble: error.message });
    }
    this.saving = false;
  };

  keys = (event) => {
    if (event.key === "Escape") {
      event.preventDefault(); // otherwise the dialog around the form would close too
      event.stopPropagation();
      this.props.cancel();
    } else if (event.target.matches("textarea") && isEnter(event)) {
      event.preventDefault();
      this.form.current.requestSubmit();
    }
  };

  render({ action, cancel, children, ...rest }, { trouble }) {
    return html`
      <form noValidate ...${rest} ref=${this.form} onSubmit=${this.submit} onKeyDown=${this.keys}>
        ${children}
        <p class="trouble" role="alert" hidden=${!trouble}>${trouble}</p>
        <div class="row end">
          <button type="button" onClick=${cancel}>Cancel</button>
          <button type="submit" class="primary">${action}</button>
        </div>
      </form>
    `;
  }
}
