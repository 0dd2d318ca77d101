// All of a person's data: export it to a file, import it from a file, or erase it.
//
// Guarantee: data is erased only after the person has typed a word to confirm.  Then the page shows the receipt.

import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { button, el, saveFile } from "../page/dom.js";
import { emit, settings } from "../page/state.js";
import { hasText, LOCALE, number, text, textParts } from "../page/texts.js";
import { moment } from "../page/words.js";
import { backlogElement, showBacklog } from "./backlog.js";
import { importElement, importFiles } from "./import.js";

// What the server counts, in display order.
const ORDER = ["sessions", "messages", "facts", "summaries", "edited_summaries", "turns", "fact_revisions", "jobs", "index_documents"];
const NO_USER = { user: false }; // the path names the person

const person = () => api.personPath(settings.user);
const place = (key) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);

function label(key) {
  const known = `dialogs.person_data.labels.${key}`;
  return hasText(known) ? text(known) : key.replaceAll("_", " ");
}

/** The row of buttons.  `close()` closes the dialog around it. */
export function personData(close) {
  const note = el("div.person-note", { role: "status" });
  const file = el("input", {
    type: "file",
    accept: ".json,.zip,application/json,application/zip",
    multiple: true,
    hidden: true,
    "aria-label": text("dialogs.import.file"),
  });
  const buttons = [
    button(text("dialogs.person_data.export"), () => run("dialogs.person_data.exporting", exportAll)),
    button(text("dialogs.import.choose"), () => file.click(), { title: text("dialogs.import.accepted") }),
    button(
      text("dialogs.person_data.erase"),
      () => run("dialogs.person_data.counting", () => eraseAll({ counted: () => note.replaceChildren(), close })),
      { kind: "danger" },
    ),
  ];
  file.addEventListener("change", () => {
    importFiles([...file.files]);
    file.value = ""; // so that the same file can be chosen again
  });

  async function run(doing, deed) {
    for (const one of buttons) one.disabled = true;
    const focused = document.activeElement;
    note.replaceChildren(el("p.muted.small.dots", {}, text(doing)));
    try {
      note.replaceChildren(...[await deed()].filter(Boolean));
    } catch (error) {
      note.replaceChildren(el("p.notice.error", { role: "alert" }, error.message));
    }
    for (const one of buttons) one.disabled = false;
    if (document.activeElement === document.body && focused?.isConnected) focused.focus();
  }

  showBacklog();
  const whose = textParts("dialogs.person_data.whose", { user: el("strong", {}, settings.user) });
  return el("div.person", {}, el("div.row.wrap", {}, el("p.grow", {}, whose), buttons, file), note, importElement, backlogElement);
}

async function exportAll() {
  const { blob, name } = await api.download(`${person()}/export`, NO_USER);
  saveFile(blob, name);
  return el("p.small", {}, text("dialogs.person_data.exported", { name, size: size(blob.size) }));
}

function size(bytes) {
  const [unit, of] = [["byte", 1], ["kilobyte", 1e3], ["megabyte", 1e6]].findLast(([, least]) => bytes >= least) ?? ["byte", 1];
  return new Intl.NumberFormat(LOCALE, { style: "unit", unit, maximumFractionDigits: 1 }).format(bytes / of);
}

async function eraseAll({ counted, close }) {
  let kept;
  const user = settings.user;
  try {
    kept = await api.get(person(), {}, NO_USER);
  } catch (error) {
    if (error.status === 404) return el("p.small", {}, text("dialogs.person_data.nothing", { user }));
    throw error;
  }
  counted();
  const counts = ["sessions", "messages", "facts"].map((kind) => text(`dialogs.import.counts.${kind}`, { count: kept[kind] })).join(", ");
  const erase = text("dialogs.person_data.erase");
  const typed = text("dialogs.person_data.erase_typed");
  if (!(await confirmed(text("dialogs.person_data.erase_title"), text("dialogs.person_data.erase_means", { user, counts }), erase, { typed }))) return null;
  const receipt = await api.del(person(), NO_USER);
  emit("person"); // removes the data from the page
  await showReceipt(receipt);
  close();
  document.dispatchEvent(new CustomEvent("show-conversation")); // on a phone the list of chats covers it
  return null;
}

function showReceipt(receipt) {
  const rows = Object.entries(receipt.erased)
    .sort(([a], [b]) => place(a) - place(b))
    .map(([key, count]) => el("tr", {}, el("th", { scope: "row" }, label(key)), el("td", {}, number(count))));
  const pending = receipt.pending ?? [];
  const name = `recap-erased-${receipt.erased_at.slice(0, 10)}.json`;
  const keep = () => saveFile(new Blob([JSON.stringify(receipt, null, 2)], { type: "application/json" }), name);
  const heading = (key) => el("th", { scope: "col" }, text(key));
  return openDialog(text("dialogs.person_data.erased_title"), (close) => [
    el("p", {}, text("dialogs.person_data.erased", { user: receipt.user_id, at: moment(receipt.erased_at) })),
    el(
      "table.receipt",
      {},
      el("caption.visually-hidden", {}, text("dialogs.person_data.receipt")),
      el("thead.visually-hidden", {}, el("tr", {}, heading("dialogs.person_data.what"), heading("dialogs.person_data.how_many"))),
      el("tbody", {}, rows),
    ),
    pending.length > 0 && el("p.notice", {}, text("dialogs.person_data.pending", { places: pending.map(label).join(", ") })),
    el(
      "div.row.end",
      {},
      button(text("dialogs.person_data.download_receipt"), keep),
      button(text("dialogs.person_data.close_receipt"), () => close(), { kind: "primary", autofocus: true }),
    ),
  ]);
}
