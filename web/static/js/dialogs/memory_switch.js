// The one switch of a person's memory: off for all chats, programs and browsers.
import { composer } from "../chat/composer.js";
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { shown } from "../page/state.js";
import { text } from "../page/words.js";

export class MemorySwitch extends Component {
  turn = ({ target: { checked: remember } }) =>
    this.attempt(async () => {
      shown.remembersPerson = remember;
      await api.patch(api.personPath(), { remember }).catch((error) => {
        shown.remembersPerson = !remember;
        throw error;
      });
      composer.forceUpdate();
    });

  render(_, { trouble }) {
    return html`<label class="choice">
        <input type="checkbox" checked=${shown.remembersPerson} onChange=${this.turn} />
        <span>
          <span class="choice-title">${text("dialogs.settings.memory")}</span>
          <span class="muted small">${text("dialogs.settings.memory_means")}</span>
        </span>
      </label>
      <${Trouble} ...${trouble} />`;
  }
}
