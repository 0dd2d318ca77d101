// A chart of the tokens in a chat: tokens sent with each turn, compared with the full history.
//
// The figures are `usage` of each turn in the API; a turn without a reply has no `usage` and no point in the chart.
// Screen readers get the same figures from a table.  What one turn took is told under its reply.

import * as api from "../page/api.js";
import { button, byId, el, svg } from "../page/dom.js";
import { on, settings, shown } from "../page/state.js";
import { number, text } from "../page/texts.js";

const PAGE = 500; // the maximum of turns in one call
const ROOM = "(min-width: 761px) and (min-height: 800px)"; // screens on which the chart opens by itself
const HEIGHT = 92;
const TOP = 8;
const BOTTOM = 16;

/** The chart of a session's turns, which may be in any order. */
function tokenChart(turns) {
  const points = pointsOf(turns);
  if (points.length < 2) {
    return el("p.token-none.muted", {}, text("chat.chart.begins"));
  }
  const plot = el("div.token-plot");
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    plot.replaceChildren(draw(points, width));
  }).observe(plot);
  const key = (kind) =>
    svg(
      "svg",
      { class: "token-key", viewBox: "0 0 18 8", "aria-hidden": "true" },
      svg("path", { class: `line-${kind}`, d: "M0 4H18" }),
    );
  const caption = el("figcaption.token-reading", {}, el("span", {}, key("sent"), text("chat.chart.sent")), el("span", {}, key("full"), text("chat.chart.full")));
  return el(
    "figure.token-chart",
    { "aria-label": text("chat.chart.label") },
    caption,
    plot,
    table(points),
  );
}

const pointsOf = (turns) =>
  turns
    .filter((turn) => turn.usage)
    .sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
    .map((turn) => ({ sent: turn.usage.prompt_tokens, full: turn.usage.full_history_tokens }));

function compared({ sent, full }) {
  if (sent === full) return text("chat.chart.same");
  const share = number((100 * Math.abs(full - sent)) / Math.max(1, full));
  return text(sent < full ? "chat.chart.less" : "chat.chart.more", { share });
}

/** Draw the chart at a width. */
function draw(points, width) {
  const { ticks, top } = scale(Math.max(...points.map((point) => Math.max(point.sent, point.full)), 1));
  const left = 8 + 7 * Math.max(...ticks.map((tick) => number(tick).length));
  const right = width - 8;
  const x = (index) => left + ((right - left) * index) / (points.length - 1);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / top;
  const line = (series) =>
    points.map((point, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(point[series]).toFixed(1)}`).join("");
  const area = (series) => `${line(series)}L${right} ${y(0)}L${left} ${y(0)}Z`;
  const label = (words, attributes) => svg("text", { class: "token-label", ...attributes }, words);

  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" },
    ...ticks.map((tick) => svg("path", { class: "token-grid", d: `M${left} ${y(tick)}H${right}` })),
    ...ticks.map((tick) => label(number(tick), { x: left - 6, y: y(tick) + 4, "text-anchor": "end" })),
    svg("path", { class: "area-full", d: area("full") }),
    svg("path", { class: "area-sent", d: area("sent") }),
    svg("path", { class: "line-full", d: line("full") }),
    svg("path", { class: "line-sent", d: line("sent") }),
    label(text("chat.chart.turn", { number: 1 }), { x: left, y: HEIGHT - 2 }),
    label(text("chat.chart.turn", { number: points.length }), { x: right, y: HEIGHT - 2, "text-anchor": "end" }),
  );
}

/** Round values for the axis, from zero to at least `most`. */
function scale(most) {
  const rough = most / 3;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].find((factor) => factor * magnitude >= rough) * magnitude);
  const top = Math.ceil(most / step) * step;
  return { top, ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step) };
}

function table(points) {
  const heads = ["chat.chart.head_turn", "chat.chart.head_sent", "chat.chart.head_full", "chat.chart.head_difference"]
    .map((name) => el("th", { scope: "col" }, text(name)));
  const rows = points.map((point, index) =>
    el(
      "tr",
      {},
      [index + 1, point.sent, point.full].map((value) => el("td", {}, number(value))),
      el("td", {}, compared(point)),
    ),
  );
  return el(
    "div.visually-hidden",
    {},
    el(
      "table",
      {},
      el("caption", {}, text("chat.chart.table")),
      el("thead", {}, el("tr", {}, heads)),
      el("tbody", {}, rows),
    ),
  );
}

/**
 * Put the chart under the conversation's heading, open or folded as the person left it.  By itself it opens once memory
 * has saved tokens.  A chat without turns has no chart.
 */
export function startChart() {
  const line = el("span.token-total.muted", {});
  const body = el("div.token-body", { id: "token-body" });
  let saved = false;
  const open = () => (settings.chart ? settings.chart === "shown" : saved && matchMedia(ROOM).matches);
  const fold = button(
    text("chat.chart.tokens"),
    () => {
      settings.chart = open() ? "hidden" : "shown";
      unfold();
    },
    { kind: "quiet", "aria-controls": "token-body" },
  );
  const unfold = () => {
    fold.setAttribute("aria-expanded", String(open()));
    body.hidden = !open();
  };
  const strip = el(
    "section.token-strip",
    { "aria-label": text("chat.chart.tokens"), hidden: true },
    el("div.token-head", {}, fold, line),
    body,
  );
  unfold();
  byId("conversation").querySelector(".panel-head").after(strip);

  const show = (words, content) => {
    strip.hidden = content === null;
    strip.classList.remove("waiting-for-turns");
    line.textContent = words;
    body.replaceChildren(...(content ? [content] : []));
  };
  let asked = 0;
  const read = async () => {
    const sessionId = shown.temporary ? null : shown.sessionId;
    const mine = ++asked;
    if (sessionId === null) return show("", null);
    try {
      const turns = await turnsOf(sessionId);
      if (mine !== asked) return;
      const points = pointsOf(turns);
      const { sent, full } = sums(points);
      saved = sent < full;
      unfold();
      show(total(sent, full), points.length ? tokenChart(turns) : null);
    } catch (error) {
      if (mine === asked) show(text("chat.chart.unreadable"), el("p.token-none", {}, `${error.message} `, button(text("chat.message.retry"), read)));
    }
  };
  on("session", () => {
    strip.classList.add("waiting-for-turns"); // hide the other chat's figures, but keep their space
    read();
  });
  on("turn", ({ sessionId }) => sessionId === shown.sessionId && read());
}

async function turnsOf(sessionId) {
  try {
    return await api.all(`${api.sessionPath(sessionId)}/turns`, { limit: PAGE });
  } catch (error) {
    if (error.status === 404) return []; // the first message is not stored yet
    throw error;
  }
}

const sums = (points) => points.reduce((sum, { sent, full }) => ({ sent: sum.sent + sent, full: sum.full + full }), { sent: 0, full: 0 });

function total(sent, full) {
  if (sent < full) return text("chat.chart.saved", { sent, full, difference: compared({ sent, full }) });
  return text("chat.chart.unsaved", { sent, full });
}
