// Has the whole window accept files: those with chats are imported, others added to what is known.
import { elementOf, html } from "../page/html.js";
import { text } from "../page/words.js";

/** `open()` opens the dialog that shows the import. */
export function startDrop(open) {
  const words = text("dialogs.import.drop");
  const veil = elementOf(html`<div class="drop" popover="manual" role="status">${words}</div>`); // above open dialogs
  document.body.append(veil);
  const files = (act) => (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    act([...event.dataTransfer.files]);
  };
  addEventListener("dragenter", files(() => veil.togglePopover(true)));
  addEventListener("dragover", files(() => {}));
  veil.addEventListener("dragleave", () => veil.togglePopover(false));
  addEventListener("drop", files(async (dropped) => {
    veil.togglePopover(false);
    const { addDocuments, isDocument } = await import("../memory/documents.js");
    const documents = [];
    for (const file of dropped) if (await isDocument(file)) documents.push(file);
    if (documents.length) await addDocuments(documents);
    const chats = dropped.filter((file) => !documents.includes(file));
    if (!chats.length) return;
    const { importElement, importFiles } = await import("./import.js");
    importFiles(chats);
    if (!importElement.isConnected) open();
  }));
}
