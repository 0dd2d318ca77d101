// All of a person's data: export it to a file, import it from a file, or erase it.
//
// Guarantee: data is erased only after the person has typed a word to confirm.  Then the page shows the receipt.

import * as api from "../page/api.js";
import { backlog } from "./backlog.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { button, el, saveFile } from "../page/dom.js";
import { emit, settings } from "../page/state.js";
import { moment, number, plural } from "../page/words.js";

// The server's names of the things it counts, and labels for them, in display order.
const NAMES = {
  sessions: ["chat", "chats"],
  messages: ["message", "messages"],
  facts: ["fact", "facts"],
  summaries: ["version of a summary", "versions of summaries"],
  edited_summaries: ["summary you wrote", "summaries you wrote"],
  turns: ["turn", "turns"],
  fact_revisions: ["wording of a fact", "wordings of facts"],
  jobs: ["waiting job", "waiting jobs"],
  index_documents: ["entry in the search index", "entries in the search index"],
  search_index: ["the search index"],
  database_files: ["the database's files"],
};
const ORDER = Object.keys(NAMES);

const named = (key, count = 1) => {
  const [one, many = one] = NAMES[key] ?? [key.replaceAll("_", " ")];
  return count === 1 ? one : many;
};
const place = (key) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
const inOrder = (counted) => Object.entries(counted).sort(([a], [b]) => place(a) - place(b));
const person = () => api.personPath(settings.user);
const NO_USER = { user: false }; // the path names the person

/** The row of buttons.  `close()` closes the dialog around it. */
export function personData(close) {
  const note = el("div.person-note", { role: "status" });
  const left = backlog();
  const file = el("input", {
    type: "file",
    accept: ".json,application/json",
    hidden: true,
    "aria-label": "File to import",
  });
  const buttons = [
    button("Export", () => run("Collecting everything", exportAll)),
    button("Import a file", () => file.click(), { title: "An export of Recap, or conversations.json of ChatGPT" }),
    button(
      "Erase everything",
      () => run("Counting", () => eraseAll({ counted: () => note.replaceChildren(), close })),
      { kind: "danger" },
    ),
  ];
  file.addEventListener("change", () => {
    const [chosen] = file.files;
    if (chosen) run(`Importing ${chosen.name}`, () => importFile(chosen)).then(() => left.show());
    file.value = ""; // so that the same file can be chosen again
  });

  async function run(doing, deed) {
    for (const one of buttons) one.disabled = true;
    const focused = document.activeElement;
    note.replaceChildren(el("p.muted.small.dots", {}, doing));
    try {
      note.replaceChildren(...[await deed()].filter(Boolean));
    } catch (error) {
      note.replaceChildren(el("p.notice.error", { role: "alert" }, error.message));
    }
    for (const one of buttons) one.disabled = false;
    if (document.activeElement === document.body && focused?.isConnected) focused.focus();
  }

  left.show();
  return el(
    "div.person",
    {},
    el(
      "div.row.wrap",
      {},
      el("p.grow", {}, "All that is remembered for ", el("strong", {}, settings.user), ", from every chat."),
      buttons,
      file,
    ),
    note,
    left.element,
  );
}

async function exportAll() {
  const { blob, name } = await api.download(`${person()}/export`, NO_USER);
  saveFile(blob, name);
  return el("p.small", {}, `Saved as ${name}, ${size(blob.size)}: every chat, summary and fact, as JSON.`);
}

function size(bytes) {
  if (bytes < 1000) return `${number(bytes)} bytes`;
  return bytes < 1_000_000
    ? `${number(bytes / 1000)} kB`
    : `${new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 }).format(bytes / 1_000_000)} MB`;
}

async function importFile(file) {
  const done = await api.post("/api/import", file, { user: false, query: { user_id: settings.user } });
  emit("sessions");
  emit("memory");
  const [created, known] = [counts(done.created), counts(done.known)];
  const renamed = Object.keys(done.renamed).length;
  return el(
    "div.notice.done",
    {},
    el(
      "p",
      {},
      created ? `${file.name} was imported: ${created} are new.` : `Everything in ${file.name} was here already.`,
    ),
    created && known && el("p", {}, `Already here, and unchanged: ${known}.`),
    renamed > 0 && el("p", {}, `${plural(renamed, "chat")} got a new id, because the old one is taken.`),
    done.created.messages > 0 &&
      el("p", {}, "You can search all of it now. It was only stored: no model has read it."),
  );
}

/** The counts above zero as text: "3 chats, 120 messages". */
const counts = (counted) =>
  inOrder(counted)
    .filter(([, count]) => count > 0)
    .map(([key, count]) => `${number(count)} ${named(key, count)}`)
    .join(", ");

async function eraseAll({ counted, close }) {
  let kept;
  try {
    kept = await api.get(person(), {}, NO_USER);
  } catch (error) {
    if (error.status === 404) return el("p.small", {}, `Nothing is kept for “${settings.user}”.`);
    throw error;
  }
  counted();
  const chats = `${plural(kept.sessions, "chat")} with ${plural(kept.messages, "message")}`;
  const text =
    `Everything kept for “${settings.user}” is erased: ${chats}, ${plural(kept.facts, "fact")} and every summary. ` +
    "This can't be undone. Export the data first if you may need it.";
  if (!(await confirmed("Erase everything?", text, "Erase everything", { typed: "erase" }))) return null;
  const receipt = await api.del(person(), NO_USER);
  emit("person"); // removes the data from the page
  await showReceipt(receipt);
  close();
  document.dispatchEvent(new CustomEvent("show-conversation")); // on a phone the list of chats covers it
  return null;
}

function showReceipt(receipt) {
  const rows = inOrder(receipt.erased).map(([key, count]) =>
    el("tr", {}, el("th", { scope: "row" }, capital(named(key, 2))), el("td", {}, number(count))),
  );
  const pending = receipt.pending ?? [];
  const name = `recap-erased-${receipt.erased_at.slice(0, 10)}.json`;
  const keep = () => saveFile(new Blob([JSON.stringify(receipt, null, 2)], { type: "application/json" }), name);
  return openDialog("Everything is erased", (close) => [
    el("p", {}, `What was kept for “${receipt.user_id}” was erased on ${moment(receipt.erased_at)}:`),
    el(
      "table.receipt",
      {},
      el("caption.visually-hidden", {}, "What was erased"),
      el(
        "thead.visually-hidden",
        {},
        el("tr", {}, el("th", { scope: "col" }, "What"), el("th", { scope: "col" }, "How many")),
      ),
      el("tbody", {}, rows),
    ),
    pending.length > 0 &&
      el(
        "p.notice",
        {},
        `Traces may remain in ${pending.map((key) => named(key)).join(" and ")}, which was in use. ` +
          "Recap removes them as soon as possible.",
      ),
    el(
      "div.row.end",
      {},
      button("Download this receipt", keep),
      button("Done", () => close(), { kind: "primary", autofocus: true }),
    ),
  ]);
}

const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
