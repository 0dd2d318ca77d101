// What goes with a person from one chat to the next, below the facts: folded, and read when it is opened.
import { Component, Trouble, html } from "../page/html.js";
import { on } from "../page/state.js";
import { text } from "../page/words.js";

const VIEWS = {
  profile: () => import("./profile.js"),
  instructions: () => import("./instructions.js"),
  rules: () => import("./rules.js"),
  documents: () => import("./documents.js"),
  examples: () => import("./examples.js"),
  links: () => import("./links.js"),
};

export const LongTerm = () => Object.keys(VIEWS).map((name) => html`<${Folded} key=${name} name=${name} />`);

class Folded extends Component {
  view = null; // the component that is shown
  state = { View: null }; // null: not opened yet

  componentDidMount() {
    on("longterm", (name) => name === this.props.name && this.setState({ unfolded: true }));
    for (const event of ["memory", "summarised"]) on(event, () => this.view?.read());
  }

  toggle = ({ currentTarget: { open } }) => {
    this.setState({ unfolded: open });
    if (open && !this.state.View) this.show();
  };

  show = () => this.attempt(async () => this.setState({ View: (await VIEWS[this.props.name]()).default }));

  render({ name }, { View, unfolded, trouble }) {
    return html`<details class="memory-folded" open=${unfolded} onToggle=${this.toggle}>
        <summary><h3>${text(`memory.longterm.titles.${name}`)}</h3></summary>
        <p class="memory-about">${text(`memory.longterm.about.${name}`)}</p>
        <${Trouble} ...${trouble} />
        ${View && html`<${View} drawn=${(view) => (this.view = view)} />`}
      </details>`;
  }
}
