// Settings, in tabs: the person, the chat on display, the look and the keys, the models, and what administrators set.
//
// Every change applies at once and is stored in this browser, except what belongs to a chat or to the person's memory,
// which the server stores.  What is as the server's operator set it is not stored, so that it follows the operator.
import * as api from "../page/api.js";
import { openSession } from "../chat/conversation.js";
import { enter } from "../chat/spaces.js";
import { openDialog } from "../page/dialog.js";
import { Component, Select, Trouble, html } from "../page/html.js";
import { MemorySwitch } from "./memory_switch.js";
import { openModelServer } from "./model_server.js";
import { openPrompts, summaryPrompts } from "./prompts.js";
import { Server } from "./server.js";
import { HERE, emit, holder, keep, person, shown, space, stored, whose } from "../page/state.js";
import { SystemPrompt } from "./system_prompt.js";
import { Tabs } from "../page/tabs.js";
import { hasText, text } from "../page/words.js";

const PLAIN = { autocomplete: "off", spellcheck: false, maxlength: 256 };
const RECALL = ["auto", "always", "tools", "off"];
const LOOKS = ["", "light", "dark"];
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const KEYS = ["send", "new_line", "stop", "search", "new_chat", "panels", "lists", "facts"];

export async function openSettings() {
  const ready = await readiness();
  return openDialog(text("page.settings"), () => html`<${Settings} ready=${ready} />`);
}

/** How the server is set, and which models answer; or the `error`, which the dialog shows. */
const readiness = () => api.get("/health/ready").catch((error) => ({ error }));

class Settings extends Component {
  state = { tab: "you" };

  render({ ready }, { tab }) {
    const recall = (mode) => keep("recall", mode === ready.recall ? "" : mode);
    const parts = {
      you: () => html`<${Part} name="name"><${Name} changed=${() => this.forceUpdate()} /><//>
        ${holder.may.change && html`<${Part} name="memory"><${MemorySwitch} key=${whose()} /><//>`}
        ${holder.may.tenant && html`<${Part} name="space"><${SpaceName} key=${space()} changed=${() => this.forceUpdate()} /><//>`}
        <${Part} name="recall"><${Choices} name="recall" options=${RECALL} chosen=${stored("recall") || ready.recall} choose=${recall} /><//>
        <${Part} name="zone"><${TimeZone} /><//>`,
      chat: () => html`<${Part} name="system"><${SystemPrompt} key=${whose()} /><//>
        <${Part} name="type"><${ChatType} key=${whose()} /><//>`,
      look: () => html`<${Part} name="look"><${Choices} name="look" options=${LOOKS} chosen=${stored("theme")} choose=${wear} /><//>
        <${Part} name="keys"><${Keys} /><//>`,
      models: () => html`<${Part} name="models"><${Models} ready=${ready} /><//>
        <${Part} name="summaries"><${SummaryPrompt} usual=${ready.summary_prompt} /><//>`,
      server: () => html`<${Server} part=${Part} />`,
    };
    const names = Object.keys(parts).filter((name) => name !== "server" || holder.may.change);
    return html`<${Tabs} label=${text("page.settings")} names=${names.map((name) => [name, text(`dialogs.settings.tabs.${name}`)])}
      chosen=${tab} choose=${(next) => this.setState({ tab: next })}>${(name) => parts[name]()}<//>`;
  }
}

const Part = ({ name, children }) => html`<section class="part"><h3>${text(`dialogs.settings.titles.${name}`)}</h3>${children}</section>`;

/** The type of the chat on display: Recap tells it from the words, unless the person says it. */
class ChatType extends Component {
  state = { types: [], session: null };

  async load() {
    const { items: types } = await api.get("/api/conversation-types");
    const session = shown.temporary || !shown.sessionId ? null : await api.find(api.sessionPath(shown.sessionId));
    return { types, session };
  }

  choose = ({ target: { value } }) =>
    this.attempt(async () => this.setState({ session: await api.patch(api.sessionPath(shown.sessionId), { type: value || null }) }));

  render(_, { types, session, trouble }) {
    const named = (name) => (hasText(`dialogs.settings.types.${name}`) ? text(`dialogs.settings.types.${name}`) : name);
    const options = [["", text("dialogs.settings.type_auto")], ...types.map(({ name }) => [name, named(name)])];
    return html`<p class="muted small">${text(session ? "dialogs.settings.type_about" : "dialogs.settings.type_later")}</p>
      <${Select} options=${options} aria-label=${text("dialogs.settings.titles.type")} value=${session?.type ?? ""} disabled=${!session} onChange=${this.choose} />
      <${Trouble} ...${trouble} />`;
  }
}

/** A group of radio buttons.  Each has a title, and an explanation where the choice is about memory. */
const Choices = ({ name, options, chosen, choose }) => html`<fieldset aria-label=${text(`dialogs.settings.titles.${name}`)}>
    ${options.map(
      (value) => html`<label class="choice">
          <input type="radio" name=${name} value=${value} checked=${value === chosen} onChange=${() => choose(value)} />
          <span>
            <span class="choice-title">${text(`dialogs.settings.choices.${name}.${value || "device"}`)}</span>
            ${name === "recall" && html`<span class="muted small">${text(`dialogs.settings.choices.recall_means.${value}`)}</span>`}
          </span>
        </label>`,
    )}
  </fieldset>`;

function wear(theme) {
  keep("theme", theme);
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/** Whose memory is shown.  `changed()` is called after the name was changed. */
class Name extends Component {
  state = { name: person(), note: "" };

  apply = async () => {
    const name = this.state.name.trim() || "me";
    this.setState({ name });
    if (name === person()) return;
    keep("user", name);
    emit("person");
    this.props.changed();
    this.setState({ note: await whatIsKept(name).catch((error) => error.message) });
  };

  render(_, { name, note }) {
    const bound = holder.user_id !== null;
    return html`<p class="muted small" id="user-help">${text(`dialogs.settings.name_${bound ? "of_key" : "about"}`)}</p>
      <label class="field">
        ${text("dialogs.settings.name")}
        <input type="text" value=${name} placeholder="me" readOnly=${bound} aria-describedby="user-help" ...${PLAIN}
          onInput=${({ target }) => this.setState({ name: target.value })} onChange=${this.apply} />
      </label>
      <p class="small" role="status">${note}</p>`;
  }
}

/** The space whose memory is shown instead.  One begins with its first message. */
class SpaceName extends Component {
  apply = ({ target }) => {
    const name = target.value.trim().replace(/[\s/]+/g, "-");
    enter(name);
    this.props.changed();
  };

  render() {
    return html`<p class="muted small" id="space-help">${text("dialogs.settings.space_about")}</p>
      <label class="field">
        ${text("dialogs.settings.space")}
        <input type="text" value=${space()} aria-describedby="space-help" ...${PLAIN} maxlength="128" onChange=${this.apply} />
      </label>`;
  }
}

async function whatIsKept(name) {
  const kept = await api.find(api.personPath());
  if (!kept) return text("dialogs.settings.name_new", { name });
  const chats = text("dialogs.settings.chats", { count: kept.sessions });
  const facts = text("dialogs.settings.facts", { count: kept.facts });
  return text("dialogs.settings.name_kept", { name, chats, facts });
}

/** The choice of the prompt that summaries are written with. */
class SummaryPrompt extends Component {
  state = { prompts: null }; // null: not loaded yet

  async load() {
    return { prompts: await summaryPrompts() };
  }

  choose = ({ target }) => {
    keep("prompt", target.value === this.props.usual ? "" : target.value);
    this.forceUpdate();
  };

  edit = async () => {
    await openPrompts(stored("prompt") || this.props.usual);
    this.read();
  };

  render({ usual }, { prompts, trouble }) {
    const chosen = stored("prompt") || usual;
    const words = prompts?.find((prompt) => prompt.name === chosen)?.text;
    const names = new Set([...(prompts ?? []).map((prompt) => prompt.name), chosen]);
    return html`<p class="muted small">${text("dialogs.settings.prompt_about")}</p>
      <label class="field">
        ${text("dialogs.settings.prompt")}
        <${Select} options=${[...names].map((name) => [name])} disabled=${!prompts} value=${chosen} onChange=${this.choose} />
      </label>
      <p class="small" role="status">${prompts && words === undefined && text("dialogs.settings.prompt_gone")}</p>
      <${Trouble} ...${trouble} />
      <details class="prompt-preview" hidden=${words === undefined}>
        <summary>${text("dialogs.settings.prompt_read")}</summary>
        <pre class="prompt-text" tabindex="0" aria-label=${text("dialogs.prompts.text")}>${words}</pre>
      </details>
      <div class="row"><button onClick=${this.edit}>${text("dialogs.settings.prompt_edit")}</button></div>`;
  }
}

function TimeZone() {
  const zones = new Set([stored("timezone"), ...Intl.supportedValuesOf("timeZone")].filter(Boolean));
  const change = ({ target }) => {
    keep("timezone", target.value);
    emit("sessions"); // redraw all times
    if (shown.sessionId) openSession(shown.sessionId);
  };
  const options = [["", text("dialogs.settings.zone_of_browser", { zone: HERE })], ...[...zones].map((zone) => [zone])];
  return html`<p class="muted small">${text("dialogs.settings.zone_about")}</p>
    <label class="field">
      ${text("dialogs.settings.titles.zone")}
      <${Select} options=${options} value=${stored("timezone")} onChange=${change} />
    </label>`;
}

const Keys = () => html`
  <dl class="keys">${KEYS.map((does) => html`<div><dt><kbd>${keysFor(does)}</kbd></dt><dd>${text(`dialogs.settings.keys.${does}`)}</dd></div>`)}</dl>`;

function keysFor(does) {
  const keys = text(`dialogs.settings.pressed.${does}`);
  return MAC ? keys.replace(/Ctrl|Strg/, "⌘").replace("Alt", "⌥") : keys;
}

/** Which models answer, and for administrators a way to connect others. */
class Models extends Component {
  state = { ready: this.props.ready };

  connect = async () => {
    const problem = await openModelServer().catch((error) => ({ error }));
    this.setState({ ready: problem ?? (await readiness()) });
  };

  render(_, { ready }) {
    return html`<p role="status">${told(ready)}</p>
      ${holder.may.server && html`<div class="row"><button onClick=${this.connect}>${text("dialogs.settings.models_server")}</button></div>`}
      <p><a href="docs/">${text("dialogs.settings.models_api")}</a></p>`;
  }
}

function told({ error, model, notice }) {
  if (error) return error.message;
  if (model.builtin) return text("dialogs.settings.models_builtin");
  return notice ?? text("dialogs.settings.models_named", model);
}
