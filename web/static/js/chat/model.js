// The model that answers the chat on display, below the box: a choice where the server offers several.
//
// A chat that has none of its own gets the server's main model.  What was chosen stays with the chat, in this browser.
import * as api from "../page/api.js";
import { Component, Select, html } from "../page/html.js";
import { keep, on, shown, stored } from "../page/state.js";
import { modelName, text } from "../page/words.js";

const slot = (sessionId) => `model.${sessionId}`;
let chosen = ""; // empty: the main model

/** The name of the model that was chosen for the chat on display; empty if none was. */
export const chosenModel = () => chosen;

export class ModelPicker extends Component {
  state = { main: "", items: [] };

  componentDidMount() {
    on("session", (sessionId) => this.take(sessionId ? stored(slot(sessionId)) : ""));
    on("begun", ({ sessionId }) => chosen && sessionId === shown.sessionId && this.take(chosen)); // a new chat has an id only now
    on("models", this.read);
    this.read();
  }

  load = () => api.get("/api/models"); // if it fails, the panels report that the server can't be reached

  take(model) {
    chosen = model;
    if (shown.sessionId) keep(slot(shown.sessionId), chosen);
    this.forceUpdate();
  }

  render(_, { main, items }) {
    const others = new Set([...items.filter((name) => name !== main), chosen].filter(Boolean));
    const label = text("page.model");
    const options = [["", modelName(main)], ...[...others].map((name) => [name])];
    return html`<${Select} class="model" aria-label=${label} title=${label} hidden=${!main} disabled=${!others.size} options=${options} value=${chosen}
        onChange=${({ currentTarget }) => this.take(currentTarget.value)} />`;
  }
}
