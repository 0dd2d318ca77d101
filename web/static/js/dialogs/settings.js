// Settings: the name, when to look back, the system prompt, the summary prompt, the time zone, the look and the models.
//
// Every change applies at once and is stored in this browser, except the system prompt, which the server stores with
// its chat.  What is as the server's operator set it is not stored, so that it follows the operator.

import * as api from "../page/api.js";
import { openSession } from "../chat/conversation.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { button, el } from "../page/dom.js";
import { mayServe, openModelServer } from "./model_server.js";
import { openPrompts, summaryPrompts } from "./prompts.js";
import { emit, holder, settings, shown } from "../page/state.js";
import { text } from "../page/texts.js";
import { tooLong } from "../page/words.js";

const USER_CHARS_MAX = 256;
const SYSTEM_PROMPT_CHARS_MAX = 20_000;

const RECALL = ["auto", "always", "tools", "off"];
const LOOKS = ["", "light", "dark"];
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const KEYS = {
  send: "Enter",
  new_line: "Shift+Enter",
  stop: "Esc",
  search: MAC ? "⌘+K" : "Ctrl+K",
  new_chat: MAC ? "⌥+N" : "Alt+N",
  panels: "F6",
  lists: "↑ ↓ Home End",
  facts: "P E Delete",
};

export async function openSettings() {
  const ready = await readiness();
  const system = systemPromptField();
  const user = userField(() => system.show());
  await openDialog(text("page.settings"), () => [
    part("name", user.nodes),
    part("recall", [
      choices("recall", RECALL, settings.recall || ready.recall, (mode) => (settings.recall = mode === ready.recall ? "" : mode)),
    ]),
    part("system", system.nodes),
    part("summaries", promptPicker(ready.summary_prompt)),
    part("zone", timezoneField()),
    part("look", [choices("look", LOOKS, settings.theme, wear)]),
    part("keys", [
      el("dl.keys", {}, Object.entries(KEYS).map(([does, keys]) => el("div", {}, el("dt", {}, keycaps(keys)), el("dd", {}, text(`dialogs.settings.keys.${does}`))))),
    ]),
    part("models", whoAnswers(ready)),
  ]);
  // Escape closes the dialog without a change event of the field that is being edited.
  await user.apply();
  for (let problem = await system.save(); problem; problem = await system.save()) {
    if (!(await confirmed(text("dialogs.settings.system_unsaved"), problem, text("page.try_again")))) return;
  }
}

/** How the server is set, and which models answer; or the `error`, which the dialog shows. */
const readiness = () => api.get("/health/ready", {}, { user: false }).catch((error) => ({ error }));

const part = (name, nodes) => el("section.part", {}, el("h3", {}, text(`dialogs.settings.titles.${name}`)), nodes);

const keycaps = (keys) =>
  keys.split(/([+ ])/).map((piece) => (piece === "+" || piece === " " ? piece : el("kbd", {}, piece)));

/** A group of radio buttons.  Each has a title, and an explanation where the choice is about memory. */
function choices(name, options, chosen, choose) {
  const explained = name === "recall";
  return el(
    `fieldset.choices${explained ? "" : ".across"}`,
    { "aria-label": text(`dialogs.settings.titles.${name}`) },
    options.map((value) =>
      el(
        "label.choice",
        {},
        el("input", { type: "radio", name, value, checked: value === chosen, onchange: () => choose(value) }),
        el("span", {}, el("span.choice-title", {}, text(`dialogs.settings.choices.${name}.${value || "device"}`)), explained && el("span.muted.small", {}, text(`dialogs.settings.choices.recall_means.${value}`))),
      ),
    ),
  );
}

function wear(theme) {
  settings.theme = theme;
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

// -- whose memory

function userField(changed) {
  const note = el("p.small", { role: "status" });
  const field = el("input", {
    type: "text",
    value: settings.user,
    autocomplete: "off",
    spellcheck: false,
    maxLength: USER_CHARS_MAX,
    placeholder: "me",
    readOnly: holder.user_id !== null,
    "aria-describedby": "user-help",
  });
  const apply = async () => {
    const name = field.value.trim() || "me";
    field.value = name;
    if (name === settings.user) return;
    settings.user = name;
    emit("person");
    changed();
    note.textContent = await whatIsKept(name);
  };
  field.addEventListener("change", apply);
  return {
    apply,
    nodes: [
      el(
        "p.muted.small",
        { id: "user-help" },
        holder.user_id === null ? text("dialogs.settings.name_about") : text("dialogs.settings.name_of_key"),
      ),
      el("label.field", {}, text("dialogs.settings.name"), field),
      note,
    ],
  };
}

async function whatIsKept(name) {
  try {
    const kept = await api.get(api.personPath(name), {}, { user: false });
    return text("dialogs.settings.name_kept", { name, chats: text("dialogs.settings.chats", { count: kept.sessions }), facts: text("dialogs.settings.facts", { count: kept.facts }) });
  } catch (error) {
    return error.status === 404 ? text("dialogs.settings.name_new", { name }) : error.message;
  }
}

// -- the chat's system prompt

function systemPromptField() {
  const note = el("p.small", { role: "status" });
  const about = el("p.muted.small", { id: "system-help" });
  const field = el("textarea", {
    rows: 3,
    placeholder: text("dialogs.settings.system_default"),
    "aria-label": text("dialogs.settings.titles.system"),
    "aria-describedby": "system-help",
  });
  const retry = button(text("page.try_again"), () => show(), { hidden: true });
  let path = null; // of the stored chat; null before its first message
  let kept = "";
  let asked = 0;

  async function show() {
    const mine = ++asked;
    const sessionId = shown.temporary ? null : shown.sessionId;
    path = null;
    field.disabled = retry.hidden = true;
    note.textContent = "";
    try {
      kept = shown.systemPrompt;
      if (sessionId !== null) {
        const place = api.sessionPath(sessionId);
        const session = await api.get(place);
        if (mine !== asked) return;
        kept = session.system_prompt ?? "";
        path = place;
      }
    } catch (error) {
      if (mine !== asked) return;
      if (error.status !== 404) {
        // 404: the chat has an id, but its first message is not stored yet
        note.textContent = error.message;
        retry.hidden = false;
        return;
      }
    }
    field.value = kept;
    field.disabled = false;
    about.textContent = `${text("dialogs.settings.system_about")} ${text(`dialogs.settings.system_kept.${path ? "chat" : shown.temporary ? "temporary" : "new"}`)}`;
  }

  /** Resolves to the error message, or to null. */
  async function save() {
    const wanted = field.value.trim();
    if (field.disabled || wanted === kept) return null;
    try {
      if (tooLong(wanted, SYSTEM_PROMPT_CHARS_MAX)) throw new Error(tooLong(wanted, SYSTEM_PROMPT_CHARS_MAX));
      if (path) await api.patch(path, { system_prompt: wanted || null });
      else shown.systemPrompt = wanted;
      kept = wanted;
      note.textContent = text(wanted ? "dialogs.settings.system_saved" : "dialogs.settings.system_emptied");
      return null;
    } catch (error) {
      note.textContent = text("dialogs.settings.system_failed", { why: error.message });
      return error.message;
    }
  }

  field.addEventListener("change", save);
  show();
  return { show, save, nodes: [about, field, el("div.row", {}, note, retry)] };
}

// -- summaries

function promptPicker(usual) {
  const note = el("p.small", { role: "status" });
  const words = el("pre.prompt-text", { tabIndex: 0, "aria-label": text("dialogs.prompts.text") });
  const preview = el("details.prompt-preview", { hidden: true }, el("summary", {}, text("dialogs.settings.prompt_read")), words);
  const select = el("select", { disabled: true });
  let prompts = [];
  const show = () => {
    const chosen = prompts.find((prompt) => prompt.name === select.value);
    preview.hidden = !chosen;
    words.textContent = chosen?.text ?? "";
    note.textContent = chosen ? "" : text("dialogs.settings.prompt_gone");
  };
  const read = async () => {
    try {
      prompts = summaryPrompts(await api.get("/api/prompts", {}, { user: false }));
    } catch (error) {
      note.replaceChildren(`${error.message} `, button(text("page.try_again"), read, { kind: "link" }));
      return;
    }
    const chosen = settings.prompt || usual;
    const names = new Set([...prompts.map((prompt) => prompt.name), chosen]);
    select.replaceChildren(...[...names].map((name) => el("option", { value: name, selected: name === chosen }, name)));
    select.disabled = false;
    show();
  };
  select.addEventListener("change", () => {
    settings.prompt = select.value === usual ? "" : select.value;
    show();
  });
  read();
  const edit = async () => {
    await openPrompts(select.value);
    read();
  };
  return [
    el("p.muted.small", {}, text("dialogs.settings.prompt_about")),
    el("label.field", {}, text("dialogs.settings.prompt"), select),
    note,
    preview,
    el("div.row", {}, button(text("dialogs.settings.prompt_edit"), edit)),
  ];
}

// -- time zone

function timezoneField() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const zones = new Set([settings.timezone, ...Intl.supportedValuesOf("timeZone")].filter(Boolean));
  const change = (event) => {
    settings.timezone = event.target.value;
    emit("sessions"); // redraw all times
    if (shown.sessionId) openSession(shown.sessionId);
  };
  const options = [...zones].map((zone) => el("option", { value: zone, selected: zone === settings.timezone }, zone));
  return [
    el("p.muted.small", {}, text("dialogs.settings.zone_about")),
    el("label.field", {}, text("dialogs.settings.titles.zone"),
      el("select", { onchange: change }, el("option", { value: "" }, text("dialogs.settings.zone_of_browser", { zone: own })), options)),
  ];
}

// -- the models

function whoAnswers(ready) {
  const told = ({ error, model, notice }) => {
    if (error) return error.message;
    return model.builtin ? text("dialogs.settings.models_builtin") : (notice ?? text("dialogs.settings.models_named", model));
  };
  const note = el("p", { role: "status" }, told(ready));
  const server = async () => {
    const problem = await openModelServer().catch((error) => ({ error }));
    note.textContent = told(problem ?? (await readiness()));
  };
  return [
    note,
    mayServe() && el("div.row", {}, button(text("dialogs.settings.models_server"), server)),
    el("p", {}, el("a", { href: "/docs/" }, text("dialogs.settings.models_api"))),
  ];
}
