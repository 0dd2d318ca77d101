// Imports files with chats, chosen or dropped anywhere on the page, and shows how far that is.
//
// Guarantee: an import that ends early says how many chats are stored.  It can go on from there, and the same file can be
// imported again: nothing is stored twice.  No model is called (see backlog.js).

import * as api from "../page/api.js";
import { announce, button, el } from "../page/dom.js";
import { emit, settings } from "../page/state.js";
import { text } from "../page/texts.js";
import { showBacklog } from "./backlog.js";
import { partsOf } from "./chats_file.js";

const COUNTED = ["sessions", "messages", "facts", "summaries", "turns", "items"];

/** Shows the import.  There is one, which goes on while no dialog shows it. */
export const importElement = el("div.import.stack", {});
let running = false;

/** Import files of the types that `partsOf` reads. */
export async function importFiles(files) {
  if (running || !files.length) return;
  const name = [...files].map((file) => file.name).join(", ");
  await run(async () => {
    importElement.replaceChildren(el("p.muted.small.dots", {}, text("dialogs.import.reading", { name })));
    return send({ name, user: settings.user, parts: await partsOf(files), stored: 0, answers: [] });
  });
}

async function run(deed) {
  running = true;
  try {
    await deed();
  } catch (error) {
    failed(error.message);
  }
  running = false;
}

/** Send the parts that are left. */
async function send(work) {
  const { name, user, parts, answers } = work;
  const count = work.stored + chatsIn(parts);
  const words = el("p.small", {});
  const bar = el("progress", { max: count || 1, "aria-label": text("dialogs.import.progress") });
  importElement.replaceChildren(words, bar);
  try {
    while (parts.length) {
      words.textContent = count ? text("dialogs.import.sending", { stored: work.stored, count }) : text("dialogs.import.sending_whole", { name });
      if (count) bar.value = work.stored; // otherwise it only shows that something goes on
      answers.push(await api.post("/api/import", parts[0].body, { user: false, query: { user_id: user } }));
      work.stored += parts.shift().chats;
    }
    finished(name, answers);
  } catch (error) {
    const kept = work.stored ? `${text("dialogs.import.stopped", { stored: work.stored, count })} ` : "";
    failed(`${kept}${error.message}`, button(text("dialogs.import.go_on"), () => run(() => send(work))));
  }
  if (answers.length) for (const event of ["sessions", "memory"]) emit(event);
  showBacklog();
}

const chatsIn = (parts) => parts.reduce((sum, part) => sum + part.chats, 0);

function failed(words, ...more) {
  importElement.replaceChildren(el("p.notice.error", { role: "alert" }, words, " ", more));
}

function finished(name, answers) {
  const counts = (key) => {
    const sums = COUNTED.map((kind) => [kind, answers.reduce((sum, answer) => sum + (answer[key][kind] ?? 0), 0)]);
    return sums.filter(([, count]) => count).map(([kind, count]) => text(`dialogs.import.counts.${kind}`, { count })).join(", ");
  };
  const [created, known] = [counts("created"), counts("known")];
  const count = answers.reduce((sum, answer) => sum + Object.keys(answer.renamed).length, 0);
  const lines = [
    created ? text("dialogs.import.done", { name, created }) : text("dialogs.import.known_all", { name }),
    created && known && text("dialogs.import.known", { known }),
    count > 0 && text("dialogs.import.renamed", { count }),
    created && text("dialogs.import.only_stored"),
  ];
  importElement.replaceChildren(el("div.notice.done", {}, lines.map((line) => line && el("p", {}, line))));
  announce(lines[0]);
}

/** Have the whole window accept files.  `open()` opens the dialog that shows the import. */
export function startDrop(open) {
  const veil = el("div.drop", { popover: "manual" }, text("dialogs.import.drop")); // above open dialogs
  document.body.append(veil);
  const files = (act) => (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    act(event);
  };
  addEventListener("dragenter", files(() => veil.togglePopover(true)));
  addEventListener("dragover", files(() => {}));
  veil.addEventListener("dragleave", () => veil.togglePopover(false));
  addEventListener("drop", files(({ dataTransfer }) => {
    veil.togglePopover(false);
    importFiles([...dataTransfer.files]);
    if (!importElement.isConnected) open();
  }));
}
