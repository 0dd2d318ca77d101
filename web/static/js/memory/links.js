// Links: which people, places, organisations and things belong together, as a picture and as a list with the quotes.
//
// The list says all that the picture shows, and can be used by keyboard; the picture is for the eye.
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { Row, Rows } from "../page/rows.js";
import { date, shortened, text } from "../page/words.js";
import { Source } from "./facts.js";

const SELF = "user"; // the person, in the API
const SHOWN = 24; // links, the nearest first: more are no picture any more
const RINGS = [0, 72, 140]; // how far from the middle an entity is, by its steps from it

const idOf = ({ fact_id, subject, relation, object }) => [fact_id, subject.name, relation, object.name].join();
const named = (name) => (name === SELF ? text("memory.links.you") : name);

export default class Links extends Component {
  state = { around: SELF, edges: null, current: null }; // current: the id of the link with focus or under the pointer

  async load() {
    const { items: edges } = await api.get("/api/graph", { entity: this.state.around, depth: 2, limit: SHOWN });
    return { edges };
  }

  show = (around) => this.setState({ around, current: null }, this.read);

  render(_, { around, edges, current, trouble }) {
    return html`<${Trouble} ...${trouble} />
      ${around !== SELF && html`<p><button class="link" onClick=${() => this.show(SELF)}>${text("memory.links.back")}</button></p>`}
      ${edges?.length === 0 && html`<p class="small">${text("memory.links.none", { name: named(around) })}</p>`}
      ${edges?.length > 0 && html`<${Picture} ...${{ edges, around, current }} show=${this.show} />`}
      <${Rows}><ul aria-label=${text("memory.longterm.titles.links")}>${edges?.map(this.row)}</ul><//>`;
  }

  row = (edge) => {
    const { subject, relation, object } = edge;
    const id = idOf(edge);
    const mark = () => this.setState({ current: id });
    const entity = ({ name }) => html`<button class="link" onClick=${() => this.show(name)}>${named(name)}</button>`;
    return html`
      <${Row} key=${id} class="item" keys=${{}} onFocusIn=${mark} onMouseEnter=${mark} onMouseLeave=${() => this.setState({ current: null })}>
        <div class="grow">${entity(subject)} ${relation} ${entity(object)}<${Source} fact=${edge} title=${date(edge.valid_from)} /></div>
      <//>`;
  };
}

function Picture({ edges, around, current, show }) {
  const places = placesOf(edges, around);
  const line = (edge) => {
    const { subject, object, relation } = edge;
    const id = idOf(edge);
    const [from, to] = [places.get(subject.name), places.get(object.name)];
    return html`<g class=${id === current ? "link-line current" : "link-line"}>
        <path d="M${from.x} ${from.y}L${to.x} ${to.y}" />
        ${id === current && html`<text x=${(from.x + to.x) / 2} y=${(from.y + to.y) / 2 - 3}>${relation}</text>`}
      </g>`;
  };
  const node = ([name, { x, y, kind }]) => html`
    <g class="link-node ${kind}" onClick=${() => show(name)}><circle cx=${x} cy=${y} r="5" /><text x=${x} y=${y + 16}>${shortened(named(name), 16)}</text></g>
  `;
  const heights = [...places.values()].map(({ y }) => y);
  const [top, bottom] = [Math.min(...heights) - 12, Math.max(...heights) + 24];
  const label = text("memory.links.picture", { count: edges.length });
  return html`
    <svg class="link-picture" viewBox="-170 ${top} 340 ${bottom - top}" role="img" aria-label=${label}>${edges.map(line)} ${[...places].map(node)}</svg>`;
}

/** Where each entity is, by its name: {kind, x, y}.  Those that are as far from the middle stand in one ring. */
function placesOf(edges, around) {
  const found = new Map(); // the kind of each entity, and its steps from the middle
  for (const { subject, object, distance } of edges) // the nearest first
    for (const { name, kind } of [subject, object])
      if (!found.has(name)) found.set(name, { kind, step: name === around ? 0 : distance });
  const rings = Map.groupBy([...found], ([, { step }]) => step);
  const place = ([name, { kind, step }], at, ring) => {
    const angle = (2 * Math.PI * at) / ring.length;
    return /** @type {[string, any]} */ ([name, { kind, x: RINGS[step] * Math.cos(angle), y: 0.85 * RINGS[step] * Math.sin(angle) }]);
  };
  return new Map([...rings.values()].flatMap((ring) => ring.map(place)));
}
