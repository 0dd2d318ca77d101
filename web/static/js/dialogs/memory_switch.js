// The one switch of a person's memory: off for all chats, programs and browsers.
import { composer } from "../chat/composer.js";
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { shown } from "../page/state.js";
import { text } from "../page/words.js";

export class MemorySwitch extends Component {
  turn = async ({ target: { checked: wanted } }) => {
    this.setState({ wanted }); // elsewhere the page tells only what is stored
    await this.attempt(async () => {
      await api.patch(api.personPath(), { remember: wanted });
      shown.remembersPerson = wanted;
      composer.forceUpdate();
    });
    this.setState({ wanted: undefined });
  };

  render(_, { wanted = shown.remembersPerson, trouble }) {
    return html`<label class="choice">
        <input type="checkbox" checked=${wanted} onChange=${this.turn} />
        <span>
          <span class="choice-title">${text("dialogs.settings.memory")}</span>
          <span class="muted small">${text("dialogs.settings.memory_means")}</span>
        </span>
      </label>
      <${Trouble} ...${trouble} />`;
  }
}
