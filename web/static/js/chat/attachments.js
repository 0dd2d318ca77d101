// Images and text files that go along with the next message.  This tab keeps them until they are sent; the server keeps only their names and sizes.
import { byId } from "../page/dom.js";
import { html, render } from "../page/html.js";
import { Icon } from "../page/rows.js";
import { number, text } from "../page/words.js";

const MOST = 10; // of one message, as the server allows
let files = []; // {name, size, url}; url: its data

export const attached = () => files;

/** Show these files beside the box, for instance those of a message that could not be sent. */
export function setAttached(list) {
  files = list.slice(0, MOST);
  render(files.map(chip), byId("attachments"));
}

const chip = (file) => html`<span class="badge">${file.name}
    <button type="button" class="icon" aria-label=${text("chat.attach.remove", file)} onClick=${() => setAttached(files.filter((one) => one !== file))}>✕</button>
  </span>`;

export async function attach(list) {
  const read = (file) =>
    new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve({ name: file.name || text("chat.attach.image"), size: file.size, url: reader.result });
      reader.readAsDataURL(file);
    });
  setAttached([...files, ...(await Promise.all([...list].map(read)))]);
}

/** The content of a message with files, in the form of the API; without any, its words. */
export function contentOf(words, list) {
  if (!list?.length) return words;
  const parts = list.map(({ name, url }) => ({ type: "file", file: { filename: name, file_data: url } }));
  return { role: "user", content: [...(words ? [{ type: "text", text: words }] : []), ...parts] };
}

/** What came with a message, of which only this is kept. */
export const Attached = ({ list }) => html`
  <p class="attached">${list.map(({ name, size, type }) => html`<span class="badge" title=${text("chat.attach.kept")}><${Icon} name="attach" />
    ${name ?? text(`chat.attach.${type === "image" ? "image" : "file"}`)}${size ? ` · ${number(size / 1000)} kB` : ""}</span>`)}</p>`;
