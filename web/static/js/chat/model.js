// The model that answers the chat on display, in the header: a choice where the server offers several.
//
// A chat that has none of its own gets the server's main model.  What was chosen stays with the chat, in this browser.
import * as api from "../page/api.js";
import { byId } from "../page/dom.js";
import { html, render } from "../page/html.js";
import { keep, on, shown, stored } from "../page/state.js";
import { modelName } from "../page/words.js";

const select = byId("model");
const slot = (sessionId) => `model.${sessionId}`;
let chosen = ""; // empty: the main model
let offered = { main: "", items: [] };

/** The name of the model that was chosen for the chat on display; empty if none was. */
export const chosenModel = () => chosen;

export function startModel() {
  select.addEventListener("change", () => {
    chosen = select.value;
    if (shown.sessionId) keep(slot(shown.sessionId), chosen);
  });
  on("session", (sessionId) => {
    chosen = sessionId ? stored(slot(sessionId)) : "";
    draw();
  });
  on("begun", ({ sessionId }) => {
    if (chosen && sessionId === shown.sessionId) keep(slot(sessionId), chosen); // a new chat has an id only now
  });
  on("models", learn);
  learn();
}

async function learn() {
  try {
    offered = await api.get("/api/models");
  } catch {
    return; // the panels report that the server can't be reached
  }
  draw();
}

function draw() {
  const { main, items } = offered;
  const others = new Set([...items.filter((name) => name !== main), chosen].filter(Boolean));
  const named = [...others].map((name) => html`<option>${name}</option>`);
  render(html`<option value="">${modelName(main)}</option>${named}`, select);
  select.value = chosen;
  select.disabled = !others.size;
  select.hidden = !main;
}
