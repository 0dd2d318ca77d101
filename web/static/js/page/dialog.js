// Modal dialogs.  Escape closes them, and focus returns to where it was.
import { Component, html, render } from "./html.js";
import { text } from "./words.js";

let count = 0;

/**
 * Open a modal dialog with a heading and what `content(close)` returns, as html.  Resolves to the argument of
 * `close(value)`, or to undefined if the dialog was dismissed.  With `locked` there is no Escape and no ✕.
 */
export function openDialog(title, content, { wide = false, locked = false } = {}) {
  const before = document.activeElement;
  const id = `dialog-${++count}`;
  const place = document.createElement("div");
  document.body.append(place);
  return new Promise((resolve) => {
    let value;
    const close = (result) => {
      value = result;
      place.firstElementChild.close();
    };
    const dismiss = (event) => {
      if (locked) event.preventDefault();
      else document.activeElement.blur(); // a field that is being edited tells of its change
    };
    const closed = () => {
      render(null, place);
      place.remove();
      if (before?.isConnected) before.focus();
      resolve(value);
    };
    const label = text("page.close_named", { name: title });
    const dialog = html`<dialog class="dialog ${wide ? "wide" : ""}" aria-labelledby=${id} onCancel=${dismiss} onClose=${closed}>
        <header class="dialog-head">
          <h2 id=${id}>${title}</h2>
          ${!locked && html`<button class="icon" aria-label=${label} onClick=${() => close()}>✕</button>`}
        </header>
        <div class="dialog-body">${content(close)}</div>
      </dialog>`;
    render(dialog, place);
    place.firstElementChild.showModal();
  });
}

/** Ask for confirmation.  With `typed`, the person must type that text.  Resolves to true or false. */
export async function confirmed(title, question, action, { typed = "" } = {}) {
  const content = (close) => html`<${Question} ...${{ question, action, typed, close }} />`;
  return (await openDialog(title, content)) === true;
}

class Question extends Component {
  state = { word: "" };
  type = ({ target }) => this.setState({ word: target.value.trim() });

  render({ question, action, typed, close }, { word }) {
    return html`<p>${question}</p>
      ${typed &&
      html`
        <label class="field">${text("page.type_to_confirm", { word: typed })}<input type="text" autocomplete="off" autofocus onInput=${this.type} /></label>
      `}
      <div class="row end">
        <button onClick=${() => close(false)}>${text("page.cancel")}</button>
        <button class="danger" disabled=${word !== typed} onClick=${() => close(true)}>${action}</button>
      </div>`;
  }
}
