// Settings: the person, the recall mode, the system prompt, the summary prompt, the time zone and the theme.
//
// Every change applies at once and is stored in this browser, except the system prompt, which the server stores with
// its chat.

import * as api from "../page/api.js";
import { openSession } from "../chat/conversation.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { button, el } from "../page/dom.js";
import { openPrompts, summaryPrompts } from "./prompts.js";
import { emit, holder, settings, shown } from "../page/state.js";
import { plural, tooLong } from "../page/words.js";

const USER_CHARS_MAX = 256;
const SYSTEM_PROMPT_CHARS_MAX = 20_000;

const RECALL = [
  ["", "As the server is set", "The server's setting RECALL decides; its default is automatic."],
  [
    "auto",
    "Automatic",
    "Looks back when a message calls for it: it mentions the past, a time, or words worth looking for.",
  ],
  ["always", "Always", "Looks back before every reply."],
  [
    "tools",
    "The model decides",
    "It looks things up by itself while it answers, if it is a model that can call tools.",
  ],
  ["off", "Off", "Never looks back; the summary and the facts are still used."],
];
const LOOKS = [
  ["", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const KEYS = [
  ["Enter", "send the message"],
  ["Shift+Enter", "begin a new line"],
  ["Esc", "stop the reply"],
  [MAC ? "⌘+K" : "Ctrl+K", "search all chats"],
  [MAC ? "⌥+N" : "Alt+N", "new chat"],
  ["F6", "next panel; with Shift, the one before"],
  ["↑ ↓", "move within a list; Home and End to its ends"],
  ["P E Delete", "pin, edit or forget the fact in focus"],
];

export async function openSettings() {
  const system = systemPromptField();
  const user = userField(() => system.show());
  await openDialog("Settings", () => [
    part("Whose memory", user.nodes),
    part("Looking back", [choices("Looking back", "recall", RECALL, (value) => (settings.recall = value))]),
    part("System prompt of this chat", system.nodes),
    part("Summaries", promptPicker()),
    part("Time", timezoneField()),
    part("Look", [choices("Look", "theme", LOOKS, wear)]),
    part("Keys", [
      el(
        "dl.keys",
        {},
        KEYS.map(([keys, does]) => el("div", {}, el("dt", {}, keycaps(keys)), el("dd", {}, does))),
      ),
    ]),
    part("This server", [
      whoAnswers(),
      el("p", {}, el("a", { href: "/docs/" }, "Every call of the API"), ", to read and to try."),
    ]),
  ]);
  // Escape closes the dialog without a change event of the field that is being edited.
  await user.apply();
  for (let problem = await system.save(); problem; problem = await system.save()) {
    if (!(await confirmed("The system prompt was not stored", problem, "Try again"))) return;
  }
}

const part = (title, nodes) => el("section.part", {}, el("h3", {}, title), nodes);

const keycaps = (keys) =>
  keys.split(/([+ ])/).map((piece) => (piece === "+" || piece === " " ? piece : el("kbd", {}, piece)));

/** A group of radio buttons, each with a title and an explanation. */
function choices(label, name, options, choose) {
  const sentences = options.some(([, , sentence]) => sentence);
  return el(
    `fieldset.choices${sentences ? "" : ".across"}`,
    { "aria-label": label },
    options.map(([value, title, sentence]) =>
      el(
        "label.choice",
        {},
        el("input", { type: "radio", name, value, checked: settings[name] === value, onchange: () => choose(value) }),
        el("span", {}, el("span.choice-title", {}, title), sentence && el("span.muted.small", {}, sentence)),
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
        holder.user_id === null
          ? "Everything here is remembered for this name. Applications that use Recap name their users; enter such a " +
              "name to see what is stored about that person."
          : "Everything here is remembered for this name, because your key belongs to it.",
      ),
      el("label.field", {}, "Name", field),
      note,
    ],
  };
}

async function whatIsKept(name) {
  try {
    const kept = await api.get(api.personPath(name), {}, { user: false });
    return `Stored for “${name}”: ${plural(kept.sessions, "chat")} and ${plural(kept.facts, "fact")}.`;
  } catch (error) {
    return error.status === 404 ? `Nothing is stored for “${name}” yet.` : error.message;
  }
}

// -- the chat's system prompt

const SYSTEM_PROMPT =
  "This text replaces the default system prompt. The summary, the facts and recalled passages are still sent.";
const KEPT = {
  chat: "It is stored with this chat.",
  temporary: "It applies to this temporary chat only.",
  notBegun: "This chat has no messages yet. The text is stored with your first message.",
};

function systemPromptField() {
  const note = el("p.small", { role: "status" });
  const about = el("p.muted.small", { id: "system-help" });
  const field = el("textarea", {
    rows: 3,
    placeholder: "The default prompt",
    "aria-label": "System prompt of this chat",
    "aria-describedby": "system-help",
  });
  const retry = button("Try again", () => show(), { hidden: true });
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
    about.textContent = `${SYSTEM_PROMPT} ${path ? KEPT.chat : shown.temporary ? KEPT.temporary : KEPT.notBegun}`;
  }

  /** Resolves to the error message, or to null. */
  async function save() {
    const text = field.value.trim();
    if (field.disabled || text === kept) return null;
    try {
      if (tooLong(text, SYSTEM_PROMPT_CHARS_MAX)) throw new Error(tooLong(text, SYSTEM_PROMPT_CHARS_MAX));
      if (path) await api.patch(path, { system_prompt: text || null });
      else shown.systemPrompt = text;
      kept = text;
      note.textContent = text ? "Saved. It applies from the next reply on." : "The default prompt is used again.";
      return null;
    } catch (error) {
      note.textContent = `It could not be saved: ${error.message}`;
      return error.message;
    }
  }

  field.addEventListener("change", save);
  show();
  return { show, save, nodes: [about, field, el("div.row", {}, note, retry)] };
}

// -- summaries

function promptPicker() {
  const note = el("p.small", { role: "status" });
  const text = el("pre.prompt-text", { tabIndex: 0, "aria-label": "The prompt's text" });
  const preview = el("details.prompt-preview", { hidden: true }, el("summary", {}, "Read its text"), text);
  const select = el(
    "select",
    { disabled: true },
    el("option", { value: settings.prompt }, settings.prompt || "As the server is set"),
  );
  let prompts = [];
  const show = () => {
    const chosen = prompts.find((prompt) => prompt.name === settings.prompt);
    preview.hidden = !chosen;
    text.textContent = chosen?.text ?? "";
    note.textContent = "";
    if (!settings.prompt)
      note.textContent = "The server's setting SUMMARY_PROMPT names it: “summary”, unless it was changed.";
    else if (prompts.length && !chosen)
      note.textContent = "This prompt no longer exists. Choose another one; until then messages can't be answered.";
  };
  const read = async () => {
    try {
      prompts = summaryPrompts(await api.get("/api/prompts", {}, { user: false }));
    } catch (error) {
      note.replaceChildren(`${error.message} `, button("Try again", read, { kind: "link" }));
      return;
    }
    const names = prompts.map((prompt) => prompt.name);
    if (settings.prompt && !names.includes(settings.prompt)) names.push(settings.prompt);
    select.replaceChildren(
      el("option", { value: "" }, "As the server is set"),
      ...names.map((name) => el("option", { value: name }, name)),
    );
    select.value = settings.prompt;
    select.disabled = false;
    show();
  };
  select.addEventListener("change", () => {
    settings.prompt = select.value;
    show();
  });
  show();
  read();
  const edit = async () => {
    await openPrompts(settings.prompt);
    read();
  };
  return [
    el(
      "p.muted.small",
      {},
      "The prompt tells the mini model what a summary keeps. It applies to summaries made from now on.",
    ),
    el("label.field", {}, "Summary prompt", select),
    note,
    preview,
    el("div.row", {}, button("Edit prompts", edit)),
  ];
}

// -- time zone

function timezoneField() {
  const note = el("p.small", { role: "status" });
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const zones = el(
    "datalist",
    { id: "timezones" },
    Intl.supportedValuesOf("timeZone").map((zone) => el("option", { value: zone })),
  );
  const field = el("input", {
    type: "text",
    value: settings.timezone,
    placeholder: `The browser's: ${own}`,
    autocomplete: "off",
    spellcheck: false,
  });
  field.setAttribute("list", "timezones");
  field.addEventListener("change", () => {
    const wanted = field.value.trim();
    const zone = wanted && known(wanted);
    field.setAttribute("aria-invalid", String(zone === null));
    if (zone === null) {
      const stays = settings.timezone || own;
      note.textContent = `“${wanted}” is no time zone. Choose one from the list; until then it stays ${stays}.`;
      return;
    }
    field.value = zone;
    note.textContent = "";
    if (zone === settings.timezone) return;
    settings.timezone = zone;
    emit("sessions"); // redraw all times
    if (shown.sessionId) openSession(shown.sessionId);
  });
  return [
    el(
      "p.muted.small",
      {},
      "Recap shows times in this time zone, and uses it to understand words such as “yesterday”.",
    ),
    el("label.field", {}, "Time zone", field, zones),
    note,
  ];
}

/** The canonical name of the zone, or null.  Offsets such as +02:00 are refused: they have no summer time. */
function known(zone) {
  try {
    if (!/^[a-z]/i.test(zone)) return null;
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}

// -- which model

function whoAnswers() {
  const line = el("p", {}, "…");
  api.get("/health/ready", {}, { user: false }).then(
    ({ model, notice }) =>
      line.replaceChildren(
        ...(model.builtin
          ? [notice ?? "The built-in model answers."]
          : [el("strong", {}, model.main), " answers; ", el("strong", {}, model.mini), " writes summaries and facts."]),
      ),
    (error) => line.replaceChildren(error.message),
  );
  return line;
}
