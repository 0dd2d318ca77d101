// The model server: where the models are, for administrators.  The key goes to Recap and never comes back.
import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { Component, createRef, html } from "../page/html.js";
import { emit } from "../page/state.js";
import { number, text } from "../page/words.js";

const PATH = "/api/model-server";
const NAMED = 12; // models that are named; all are offered where one types
const OPENAI = "https://api.openai.com/v1";

/** Throws ApiError if the model server in use can't be read. */
export async function openModelServer() {
  const server = await api.get(PATH);
  await openDialog(text("dialogs.model_server.title"), () => html`<${ModelServer} server=${server} />`);
}

/** What is to be told of a model's check, beside that the main model works. */
function lines({ task, model, works, problem, window, learned, warnings }) {
  const about = [works ? null : problem, window && text("dialogs.model_server.window", { tokens: number(window) })];
  const told = [...about, ...learned, ...warnings].filter(Boolean);
  if (task === "main" && !told.length) {
    return [];
  }
  const state = text(`dialogs.model_server.${works ? "does_work" : "fails"}`, { model });
  return [`${state} ${told.join("; ")}`];
}

class ModelServer extends Component {
  form = createRef();
  state = { server: this.props.server, said: "", names: [] }; // names: of the models at the typed address

  act = (before, call) => (event) => {
    event.preventDefault();
    this.setState({ said: before });
    this.attempt(async () => {
      const said = await call().catch((error) => `${error.message} ${error.told}`);
      this.setState({ said });
    });
  };

  test = this.act(text("dialogs.model_server.testing"), async () => {
    const { model, reply, seconds, checks } = await api.post(`${PATH}/test`, this.draft());
    const works = text("dialogs.model_server.works", { model, reply, time: number(seconds * 1000) });
    return [works, ...checks.flatMap(lines)].map((line) => html`<p>${line}</p>`);
  });
  list = this.act(text("dialogs.model_server.listing"), async () => {
    const { items: names } = await api.post(`${PATH}/models`, this.draft());
    this.setState({ names });
    const few = names.slice(0, NAMED).join(", ");
    return names.length ? text("dialogs.model_server.listed", { count: names.length, names: names.length > NAMED ? `${few}, …` : few }) : text("dialogs.model_server.lists_none");
  });
  save = this.act("", () => this.change(api.put(PATH, this.draft()), text("dialogs.model_server.saved")));
  forget = this.act("", () => this.change(api.del(PATH), text("dialogs.model_server.forgotten")));

  async change(call, done) {
    const server = await call;
    emit("models");
    this.setState({ server }, () => this.form.current.reset());
    return done;
  }

  draft() {
    const typed = [...new FormData(this.form.current)].map(([name, value]) => [name, String(value).trim()]);
    const draft = Object.fromEntries(typed);
    const same = draft.base_url === this.state.server.base_url; // the key in use goes to its own address only
    return { ...draft, api_key: draft.api_key || (same ? null : "") };
  }

  render(_, { server, said, busy, names }) {
    const { source, key_end, problem, refusal } = server;
    const known = source === "none" ? {} : server;
    const field = (name, type, hint, list) => html`<label class="field">
        ${text(`dialogs.model_server.fields.${name}`)}
        <input name=${name} type=${type} placeholder=${hint} list=${list} autocomplete="off" defaultValue=${known[name]} />
      </label>`;
    const button = (act, label) => html`<button type="button" disabled=${busy} onClick=${act}>${label}</button>`;
    return html`<form class="stack" noValidate ref=${this.form} onSubmit=${this.save}>
        <p>${text("dialogs.model_server.about")}</p>
        <p class="notice error" hidden=${!problem && !refusal}>${problem ?? refusal}</p>
        ${field("base_url", "url", OPENAI)}
        ${field("api_key", "password", key_end && text("dialogs.model_server.key_kept", { end: key_end }))}
        <div class="row end">${button(this.list, text("dialogs.model_server.list"))}</div>
        ${field("main", "text", source === "none" ? server.main : "", "served-models")}
        ${field("mini", "text", "", "served-models")}
        <datalist id="served-models">${names.map((name) => html`<option value=${name} />`)}</datalist>
        <div class="small" role="status">${said}</div>
        <div class="row end wrap">
          ${source === "stored" && button(this.forget, text("dialogs.model_server.forget"))}
          ${button(this.test, text("dialogs.model_server.test"))}
          <button type="submit" class="primary" disabled=${busy || refusal !== null}>${text("page.save")}</button>
        </div>
      </form>`;
  }
}
