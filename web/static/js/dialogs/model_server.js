// The model server: where the models are, for administrators.  The key goes to Recap and never comes back.

import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { button, el } from "../page/dom.js";
import { emit, holder } from "../page/state.js";
import { number, text } from "../page/texts.js";

const PATH = "/api/model-server";
const SERVERS = { user: false }; // it is everybody's

/** Whether the key of this page may set the model server. */
export const mayServe = () => holder.user_id === null && holder.scopes.includes("admin");

/** Throws ApiError if it can't be read. */
export async function openModelServer() {
  let server = await api.get(PATH, {}, SERVERS);
  const note = el("p.small", { role: "status" });
  const problem = el("p.notice.error", { hidden: true });
  const field = (name, type = "text") => el("input", { type, name, autocomplete: "off", spellcheck: false });
  const fields = { base_url: field("base_url", "url"), api_key: field("api_key", "password"), main: field("main"), mini: field("mini") };

  const show = () => {
    for (const name of ["base_url", "main", "mini"]) fields[name].value = server.source === "none" ? "" : server[name];
    fields.api_key.value = "";
    fields.api_key.placeholder = server.key_end ? text("dialogs.model_server.key_kept", { end: server.key_end }) : "";
    fields.base_url.placeholder = "https://api.openai.com/v1";
    problem.textContent = server.problem ?? server.refusal ?? "";
    problem.hidden = !problem.textContent;
    save.disabled = server.refusal !== null;
    forget.hidden = server.source !== "stored";
  };
  const draft = () => {
    const [base_url, api_key, main, mini] = Object.values(fields).map((one) => one.value.trim());
    const same = base_url === server.base_url; // the key in use goes to its own address only
    return { base_url, api_key: api_key || (same ? null : ""), main, mini };
  };
  const act = (words, call) => async (event) => {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    note.textContent = words;
    try {
      note.textContent = await call();
    } catch (error) {
      note.textContent = `${error.message} ${error.told}`;
    }
    pressed.disabled = false;
  };
  const change = (call) => async () => {
    server = await call();
    emit("models");
    show();
    return text(server.source === "none" ? "dialogs.model_server.forgotten" : "dialogs.model_server.saved");
  };

  const test = button(text("dialogs.model_server.test"), act(text("dialogs.model_server.testing"), async () => {
    const { model, reply, seconds } = await api.post(`${PATH}/test`, draft(), SERVERS);
    return text("dialogs.model_server.works", { model, reply, time: number(seconds * 1000) });
  }));
  const save = button(text("dialogs.model_server.save"), act("", change(() => api.put(PATH, draft(), SERVERS))), { kind: "primary" });
  const forget = button(text("dialogs.model_server.forget"), act("", change(() => api.del(PATH, SERVERS))));
  show();
  await openDialog(text("dialogs.model_server.title"), () => [
    el("p", {}, text("dialogs.model_server.about")),
    problem,
    el("label.field", {}, text("dialogs.model_server.address"), fields.base_url),
    el("label.field", {}, text("dialogs.model_server.key"), fields.api_key),
    el("label.field", {}, text("dialogs.model_server.main"), fields.main),
    el("label.field", {}, text("dialogs.model_server.mini"), fields.mini),
    note,
    el("div.row.end.wrap", {}, forget, test, save),
  ]);
}
