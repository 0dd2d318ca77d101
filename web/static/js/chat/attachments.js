// Images and text files that go along with the next message.  This tab keeps them until they are sent; the server keeps only their names and sizes.
import { html } from "../page/html.js";
import { Icon } from "../page/rows.js";
import { number, text } from "../page/words.js";

export const FILES_MAX = 10; // of one message, as the server allows
export const ACCEPTED = "image/png,image/jpeg,image/gif,image/webp,text/*,.md,.json,.csv,.py,.js,.toml,.yaml,.xml";

const IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;

/** Whether the server can hand a file to a model.  Of what is neither text nor an image, the first bytes have a zero, but in UTF-16. */
async function isUsable(file) {
  const start = new Uint8Array(await file.slice(0, 4096).arrayBuffer().catch(() => new ArrayBuffer(0))); // `read` tells why
  const isUtf16 = ["255,254", "254,255"].includes(String(start.slice(0, 2)));
  return IMAGE.test(file.type) || isUtf16 || !(start.includes(0) || file.type === "application/pdf");
}

/** Files of the browser as {name, size, url}; url: their data.  Throws Error in words. */
export async function readFiles(list) {
  for (const file of list) if (!(await isUsable(file))) throw new Error(text("chat.attach.unusable", file));
  const read = (file) =>
    new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onerror = () => reject(new Error(text("dialogs.import.wrong.unreadable", file)));
      reader.onload = () => resolve({ name: file.name || text("chat.attach.image"), size: file.size, url: reader.result });
      reader.readAsDataURL(file);
    });
  return Promise.all([...list].map(read));
}

/** What will go along; `change(files)` leaves one out. */
export function Chosen({ files, change }) {
  const chip = (file) => html`<span class="badge">${file.name}
      <button type="button" class="icon" aria-label=${text("chat.attach.remove", file)} onClick=${() => change(files.filter((one) => one !== file))}>✕</button>
    </span>`;
  return files.length > 0 && html`<div class="attachments">${files.map(chip)}</div>`;
}

const PLACEHOLDER = /^\[(?:image|file|audio)(?: [^\]\n]*)?\]$/gm; // where something was attached, in the stored words
const KEPT_MAX = 5; // messages whose files this tab keeps, to send them again
const kept = new Map(); // by the message's id

export function keepSent(id, files) {
  if (!files.length) return;
  kept.set(id, files);
  if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
}

/** What came with a stored message; before attachments had names, only a hash was kept. */
export const cameWith = (message) => (message.extra?.attachments ?? []).filter((one) => one.name || one.type);

/** Its words without the places of attachments. */
export const wordsOf = (message) => (cameWith(message).length ? message.content.replace(PLACEHOLDER, "").trim() : message.content);

/** Its files, to be sent again; null if this tab does not have them. */
export const filesOf = (message) => kept.get(message.id) ?? (cameWith(message).length ? null : []);

/** The content of a message with files, in the form of the API; without any, its words. */
export function contentOf(words, list) {
  if (!list?.length) return words;
  const parts = list.map(({ name, url }) => ({ type: "file", file: { filename: name, file_data: url } }));
  return { role: "user", content: [...(words ? [{ type: "text", text: words }] : []), ...parts] };
}

/** What came with a message, of which only this is kept. */
export const Attached = ({ list }) => html`
  <p class="attached">${list.map(({ name, size, type }) => html`<span class="badge" title=${text("chat.attach.kept")}><${Icon} name="attach" />
    ${name ?? text(`chat.attach.${type === "image" ? "image" : "file"}`)}${size ? ` · ${number(Math.max(1, size / 1000))} kB` : ""}</span>`)}</p>`;
