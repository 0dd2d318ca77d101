// A chart of the tokens in a chat: tokens sent with each turn, compared with the full history.
//
// The figures are `usage` of each turn in the API; a turn without a reply has no `usage` and no point in the chart.
// Screen readers get the same figures from a table.  What one turn took is told under its reply.

import * as api from "../page/api.js";
import { byId } from "../page/dom.js";
import { Component, createRef, html, render } from "../page/html.js";
import { on, settings, shown } from "../page/state.js";
import { number, text } from "../page/texts.js";

const PAGE = 500; // the maximum of turns in one call
const ROOM = "(min-width: 761px) and (min-height: 800px)"; // screens on which the chart opens by itself
const HEIGHT = 92;
const TOP = 8;
const BOTTOM = 16;
const HEADS = ["chat.chart.head_turn", "chat.chart.head_sent", "chat.chart.head_full", "chat.chart.head_difference"];

export const startChart = () => render(html`<${Strip} />`, byId("token-strip"));

/**
 * The chart under the conversation's heading, open or folded as the person left it.  By itself it opens once memory has
 * saved tokens.  A chat without turns has no chart.
 */
class Strip extends Component {
  state = { points: [], trouble: "", waiting: false }; // waiting: the figures are another chat's

  componentDidMount() {
    on("session", () => {
      this.setState({ waiting: true });
      this.read();
    });
    on("turn", ({ sessionId }) => sessionId === shown.sessionId && this.read());
  }

  read = async () => {
    const sessionId = shown.temporary ? null : shown.sessionId;
    const mine = (this.asked = {});
    const found = await pointsOf(sessionId).then(
      (points) => ({ points, trouble: "" }),
      ({ message }) => ({ trouble: message }),
    );
    if (mine === this.asked) this.setState({ ...found, waiting: false });
  };

  fold = (open) => {
    settings.chart = open ? "hidden" : "shown";
    this.forceUpdate();
  };

  render(_, { points, trouble, waiting }) {
    const sum = (name) => points.reduce((all, point) => all + point[name], 0);
    const [sent, full] = [sum("sent"), sum("full")];
    const open = settings.chart ? settings.chart === "shown" : sent < full && matchMedia(ROOM).matches;
    return html`
      <section
        class="token-strip ${waiting ? "waiting-for-turns" : ""}"
        aria-label=${text("chat.chart.tokens")}
        hidden=${!points.length && !trouble}
      >
        <div class="token-head">
          <button class="quiet" aria-controls="token-body" aria-expanded=${open} onClick=${() => this.fold(open)}>
            ${text("chat.chart.tokens")}
          </button>
          <span class="token-total muted">${trouble ? text("chat.chart.unreadable") : total({ sent, full })}</span>
        </div>
        <div class="token-body" id="token-body" hidden=${!open}>
          ${trouble
            ? html`<p>${trouble} <button onClick=${this.read}>${text("chat.message.retry")}</button></p>`
            : points.length > 1
              ? html`<${Chart} points=${points} />`
              : html`<p class="muted">${text("chat.chart.begins")}</p>`}
        </div>
      </section>
    `;
  }
}

/** What each turn of a session took, the first turn first. */
async function pointsOf(sessionId) {
  if (sessionId === null) return [];
  const turns = await api.all(`${api.sessionPath(sessionId)}/turns`, { limit: PAGE }).catch((error) => {
    if (error.status === 404) return []; // the first message is not stored yet
    throw error;
  });
  return turns
    .filter((turn) => turn.usage)
    .sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
    .map(({ usage }) => ({ sent: usage.prompt_tokens, full: usage.full_history_tokens }));
}

function total({ sent, full }) {
  if (sent < full) return text("chat.chart.saved", { sent, full, difference: compared({ sent, full }) });
  return text("chat.chart.unsaved", { sent, full });
}

function compared({ sent, full }) {
  if (sent === full) return text("chat.chart.same");
  const share = number((100 * Math.abs(full - sent)) / Math.max(1, full));
  return text(sent < full ? "chat.chart.less" : "chat.chart.more", { share });
}

class Chart extends Component {
  place = createRef();
  state = { width: 0 };

  componentDidMount() {
    this.watch = new ResizeObserver(([{ contentRect }]) => this.setState({ width: Math.round(contentRect.width) }));
    this.watch.observe(this.place.current);
  }

  componentWillUnmount() {
    this.watch.disconnect();
  }

  render({ points }, { width }) {
    return html`
      <figure class="token-chart" aria-label=${text("chat.chart.label")}>
        <figcaption class="token-reading"><${Key} of="sent" /><${Key} of="full" /></figcaption>
        <div class="token-plot" ref=${this.place}>
          ${width > 0 && html`<${Plot} points=${points} width=${width} />`}
        </div>
        <div class="visually-hidden">
          <table>
            <caption>${text("chat.chart.table")}</caption>
            <thead><tr>${HEADS.map((head) => html`<th scope="col">${text(head)}</th>`)}</tr></thead>
            <tbody>
              ${points.map((point, index) => {
                const cells = [number(index + 1), number(point.sent), number(point.full), compared(point)];
                return html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
              })}
            </tbody>
          </table>
        </div>
      </figure>
    `;
  }
}

const Key = ({ of }) => html`
  <span>
    <svg class="token-key" viewBox="0 0 18 8" aria-hidden="true"><path class="line-${of}" d="M0 4H18" /></svg>
    ${text(`chat.chart.${of}`)}
  </span>
`;

function Plot({ points, width }) {
  const { ticks, top } = scale(Math.max(...points.map(({ sent, full }) => Math.max(sent, full)), 1));
  const left = 8 + 7 * Math.max(...ticks.map((tick) => number(tick).length));
  const right = width - 8;
  const x = (index) => left + ((right - left) * index) / (points.length - 1);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / top;
  const line = (series) =>
    points.map((point, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(point[series]).toFixed(1)}`).join("");
  const area = (series) => `${line(series)}L${right} ${y(0)}L${left} ${y(0)}Z`;
  const label = (words, at, anchor) => html`<text class="token-label" ...${at} text-anchor=${anchor}>${words}</text>`;
  const turn = (at, count, anchor) =>
    label(text("chat.chart.turn", { number: count }), { x: at, y: HEIGHT - 2 }, anchor);
  return html`
    <svg viewBox="0 0 ${width} ${HEIGHT}" width=${width} height=${HEIGHT} aria-hidden="true">
      ${ticks.map((tick) => html`<path class="token-grid" d="M${left} ${y(tick)}H${right}" />`)}
      ${ticks.map((tick) => label(number(tick), { x: left - 6, y: y(tick) + 4 }, "end"))}
      <path class="area-full" d=${area("full")} />
      <path class="area-sent" d=${area("sent")} />
      <path class="line-full" d=${line("full")} />
      <path class="line-sent" d=${line("sent")} />
      ${turn(left, 1, "start")} ${turn(right, points.length, "end")}
    </svg>
  `;
}

/** Round values for the axis, from zero to at least `most`. */
function scale(most) {
  const rough = most / 3;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].find((factor) => factor * magnitude >= rough) * magnitude);
  const top = Math.ceil(most / step) * step;
  return { top, ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step) };
}
