// Where a list ends that is loaded in pages.

import { Component, createRef, html } from "../page/html.js";

/** Calls `load()` when it comes near the view.  It does so once: give it a key that changes with the page to load. */
export class Edge extends Component {
  place = createRef();

  componentDidMount() {
    const edge = this.place.current;
    const near = ([{ isIntersecting }]) => isIntersecting && this.props.load();
    this.watch = new IntersectionObserver(near, { root: edge.parentElement, rootMargin: "400px 0px" });
    this.watch.observe(edge);
  }

  componentWillUnmount() {
    this.watch.disconnect();
  }

  render({ children }) {
    return html`<div class="earlier" ref=${this.place}>${children}</div>`;
  }
}
