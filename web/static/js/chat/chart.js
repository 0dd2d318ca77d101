// A chart of the tokens in a chat: tokens sent with each turn, compared with the full history.
//
// The figures are `usage` of each turn in the API; a turn without a reply has no `usage` and no point in the chart.
// Screen readers get the same figures from a table.  What one turn took is told under its reply.
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { keep, on, shown, stored } from "../page/state.js";
import { number, text } from "../page/words.js";

const PAGE = 500; // the maximum of turns in one call
const ROOM = "(min-width: 761px) and (min-height: 800px)"; // screens on which the chart opens by itself
const HEADS = ["chat.chart.head_turn", "chat.chart.head_sent", "chat.chart.head_full", "chat.chart.head_difference"];
const SERIES = ["full", "sent"];

/**
 * The chart under the conversation's heading, open or folded as the person left it.  By itself it opens once memory has
 * saved tokens; before that there is no chart.
 */
export class Strip extends Component {
  state = { points: [], of: null }; // of: the id of the session that the points belong to

  componentDidMount() {
    on("session", this.read);
    on("turn", ({ sessionId }) => sessionId === shown.sessionId && this.read());
  }

  async load() {
    const of = shown.temporary ? null : shown.sessionId;
    return { points: await pointsOf(of), of };
  }

  fold = (event, open) => {
    event.preventDefault(); // `open` below says it
    keep("chart", open ? "hidden" : "shown");
    this.forceUpdate();
  };

  render(_, { points, of, busy, trouble }) {
    const sum = (name) => points.reduce((all, point) => all + point[name], 0);
    const [sent, full] = [sum("sent"), sum("full")];
    const open = stored("chart") ? stored("chart") === "shown" : sent < full && matchMedia(ROOM).matches;
    const old = busy && of !== shown.sessionId;
    return html`
      <section class="strip ${old ? "waiting-for-turns" : ""}" aria-label=${text("chat.chart.tokens")} hidden=${sent >= full && !trouble?.message}>
        <details open=${open}>
          <summary class="cut muted" onClick=${(event) => this.fold(event, open)}>
            ${text("chat.chart.tokens")}
            <span class="token-total">${trouble?.message ? text("chat.chart.unreadable") : total({ sent, full })}</span>
          </summary>
          <div class="token-body"><${Trouble} ...${trouble} />${points.length > 1 && html`<${Chart} points=${points} />`}</div>
        </details>
      </section>`;
  }
}

/** What each turn of a session took, the first turn first. */
async function pointsOf(sessionId) {
  if (sessionId === null) return [];
  const turns = await api.all(`${api.sessionPath(sessionId)}/turns`, { limit: PAGE }).catch(api.unlessGone);
  return (turns ?? []) // the first message may not be stored yet
    .filter((turn) => turn.usage)
    .sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
    .map(({ usage }) => ({ sent: usage.prompt_tokens, full: usage.full_history_tokens }));
}

const total = (sums) => text("chat.chart.saved", { ...sums, difference: compared(sums) });

function compared({ sent, full }) {
  if (sent === full) return text("chat.chart.same");
  const share = number((100 * Math.abs(full - sent)) / Math.max(1, full));
  return text(sent < full ? "chat.chart.less" : "chat.chart.more", { share });
}

function Chart({ points }) {
  const cells = points.map((point, at) => [number(at + 1), number(point.sent), number(point.full), compared(point)]);
  return html`<figure class="token-chart" aria-label=${text("chat.chart.label")}>
      <figcaption class="row"><${Key} of="sent" /><${Key} of="full" /></figcaption>
      <${Plot} points=${points} />
      <div class="visually-hidden">
        <table>
          <caption>${text("chat.chart.table")}</caption>
          <thead><tr>${HEADS.map((head) => html`<th scope="col">${text(head)}</th>`)}</tr></thead>
          <tbody>${cells.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
        </table>
      </div>
    </figure>`;
}

const Key = ({ of }) => html`
  <span><svg class="token-key" viewBox="0 0 18 8" aria-hidden="true"><path class="line-${of}" d="M0 4H18" /></svg>${text(`chat.chart.${of}`)}</span>`;

/** The lines, in a picture whose units are turns and tokens.  It is stretched to the room that there is. */
function Plot({ points }) {
  const ticks = scale(Math.max(...points.map(({ sent, full }) => Math.max(sent, full)), 1));
  const [right, top] = [points.length - 1, ticks.at(-1)];
  const line = (series) => `M${points.map((point, at) => `${at} ${top - point[series]}`).join("L")}`;
  const turn = (count) => html`<span>${text("chat.chart.turn", { number: count })}</span>`;
  return html`<div class="token-plot" aria-hidden="true">
      <div class="token-ticks">${ticks.toReversed().map((tick) => html`<span>${number(tick)}</span>`)}</div>
      <svg viewBox="0 0 ${right} ${top}" preserveAspectRatio="none">
        ${ticks.map((tick) => html`<path class="token-grid" d="M0 ${tick}H${right}" />`)}
        ${SERIES.map((series) => html`<path class="area-${series}" d="${line(series)}V${top}H0Z" />`)}
        ${SERIES.map((series) => html`<path class="line-${series}" d=${line(series)} />`)}
      </svg>
      <div class="token-turns">${turn(1)}${turn(points.length)}</div>
    </div>`;
}

/** Round values for the axis, from zero to at least `most`. */
function scale(most) {
  const rough = most / 3;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].find((factor) => factor * magnitude >= rough) * magnitude);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}
