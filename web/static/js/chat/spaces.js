// The choice of the memory that the page shows: the person's own, or that of a space which several persons share.
import * as api from "../page/api.js";
import { Component, Select, html } from "../page/html.js";
import { emit, holder, keep, on, space, usesOwn } from "../page/state.js";
import { text } from "../page/words.js";

/** Show the memory of a space, or without a name the person's own. */
export function enter(name) {
  if (name === space()) return;
  keep("space", name);
  emit("person");
}

/** It is there once there is a space. */
export class Spaces extends Component {
  state = { spaces: [] };

  componentDidMount() {
    for (const event of ["person", "turn"]) on(event, this.read);
    this.read();
  }

  async load() {
    if (this.state.spaces.some(({ name }) => name === space()) || (this.known === space() && !space())) return {};
    this.known = space();
    return { spaces: await api.all("/api/spaces") };
  }

  choose = ({ target }) => enter(target.value);

  takeAlong = ({ target }) => {
    keep("withMe", target.checked ? "on" : "off");
    this.forceUpdate();
  };

  render(_, { spaces }) {
    const shown = space();
    const names = [...new Set([...(shown ? [shown] : []), ...spaces.map(({ name }) => name)])];
    if (!names.length) return null;
    const reads = new Set(spaces.filter(({ right }) => right === "read").map(({ name }) => name));
    const label = (name) => (reads.has(name) ? text("chat.spaces.read_only", { space: name }) : name);
    const isBound = holder.user_id === null && holder.spaces !== null; // a key of spaces alone
    const options = [!isBound && ["", text("chat.spaces.own")], ...names.map((name) => [name, label(name)])];
    return html`<div class="spaces">
        <${Select} id="space" options=${options} aria-label=${text("chat.spaces.label")} value=${shown} onChange=${this.choose} />
        ${shown &&
        !isBound &&
        html`<label class="row small" title=${text("chat.spaces.with_me_means")}>
          <input type="checkbox" checked=${usesOwn()} onChange=${this.takeAlong} /> ${text("chat.spaces.with_me")}
        </label>`}
      </div>`;
  }
}
