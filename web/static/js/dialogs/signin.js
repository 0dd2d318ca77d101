// Signing in: the page asks for an API key if the server requires one.
//
// Guarantee: the key is stored only in sessionStorage (by api.js).  New tabs get it from open ones, and it goes with the
// last tab or by Sign out.  It never appears in a URL, in the settings or in the text of the page.
import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { Component, html } from "../page/html.js";
import { text, textParts } from "../page/words.js";

export function startSignIn() {
  api.onKeyNeeded(async (refused) => {
    const content = (close) => html`<${SignIn} refused=${refused} signIn=${close} />`;
    let key; // a browser may close any dialog, and nothing can be shown without a key
    while (!key) key = await openDialog(text("dialogs.sign_in.title"), content, { locked: true });
    return key;
  });
}

class SignIn extends Component {
  state = { problem: this.props.refused ? text("dialogs.sign_in.refused") : "" };

  submit = (event) => {
    event.preventDefault();
    const key = event.target.elements.key.value.trim();
    if (!key) this.setState({ problem: text("dialogs.sign_in.missing") });
    else if (!sendable(key)) this.setState({ problem: text("dialogs.sign_in.unsendable") });
    else this.props.signIn(key);
  };

  render(_, { problem }) {
    const names = { command: html`<code>recap keys create</code>`, setting: html`<code>RECAP_API_KEYS</code>` };
    const about = { autocomplete: "off", spellcheck: false, maxlength: 1000, "aria-describedby": "key-problem" };
    return html`<form class="stack" noValidate onSubmit=${this.submit}>
        <p>${textParts("dialogs.sign_in.explanation", names)}</p>
        <p class="notice error" id="key-problem" role="alert" hidden=${!problem}>${problem}</p>
        <label class="field">
          ${text("dialogs.sign_in.key")}
          <input type="password" name="key" required aria-invalid=${problem ? "true" : null} ...${about} />
        </label>
        <p class="muted small">${text("dialogs.sign_in.key_stays")}</p>
        <div class="row end"><button type="submit" class="primary">${text("dialogs.sign_in.title")}</button></div>
      </form>`;
  }
}

/** Whether the key is valid in a header.  For an invalid one, fetch() throws an error that does not help people. */
const sendable = (key) => /^[\x21-\x7e]+$/.test(key);
