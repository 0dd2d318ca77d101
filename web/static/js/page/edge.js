// Where a list ends that is read, or drawn, bit by bit.
import { Component, Trouble, createRef, html } from "./html.js";

/** Calls `more()` when it comes near the view.  It does so once: give it a key that changes with what is next. */
export class Edge extends Component {
  place = createRef();

  componentDidMount() {
    const near = ([entry]) => entry.isIntersecting && !this.state.busy && this.more();
    this.watch = new IntersectionObserver(near, /** @type {any} */ ({ scrollMargin: "400px" }));
    this.watch.observe(this.place.current);
  }

  more = () => this.attempt(() => this.props.more(), this.more);

  componentWillUnmount() {
    this.watch.disconnect();
  }

  render({ children }, { trouble }) {
    return html`<div class="edge" ref=${this.place}>${children}<${Trouble} ...${trouble} /></div>`;
  }
}
