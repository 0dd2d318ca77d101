// Documents: files that were added to what is known, and those that could not be read.
import { isActivity } from "../dialogs/chats_file.js";
import * as api from "../page/api.js";
import { announce, chooseFiles } from "../page/dom.js";
import { Component, Trouble, html } from "../page/html.js";
import { Rows } from "../page/rows.js";
import { emit, holder } from "../page/state.js";
import { date, text } from "../page/words.js";
import { Item } from "./item.js";

export const KINDS = [".pdf", ".html", ".htm", ".txt", ".md", ".markdown"];
const A_CHAT = /^(?:##\s*(?:user|assistant|you|chatgpt|claude)\b|\*\*(?:you|user|assistant|chatgpt|claude):?\*\*)/im;
const LOOKED_AT = 20_000; // bytes of a Markdown file, which may be an exported chat
let refused = []; // {name, message} of the last files
let reading = ""; // the name of the file that is being read
let view = null; // the list, once it is opened

/** Whether a file is a document, and no export with chats. */
export async function isDocument(file) {
  const name = file.name.toLowerCase();
  if (/^chat\.html$/.test(name) || !KINDS.some((kind) => name.endsWith(kind))) return false; // ChatGPT's exports have one
  if (await isActivity(file)) return false;
  return !/\.(?:md|markdown|txt)$/.test(name) || !A_CHAT.test(await file.slice(0, LOOKED_AT).text());
}

/** Add files one after another, and show the list. */
export async function addDocuments(files) {
  refused = [];
  emit("longterm", "documents");
  for (const file of files) {
    reading = file.name;
    view?.forceUpdate();
    try {
      const { title } = await api.upload("/api/documents", file);
      announce(text("memory.documents.added", { title }));
    } catch ({ message }) {
      refused.push({ name: file.name, message });
    }
  }
  reading = "";
  view?.read();
}

export default class Documents extends Component {
  state = { items: null }; // null: not loaded yet

  async load() {
    view = this;
    return { items: await api.all("/api/documents") };
  }

  add = async () => addDocuments(await chooseFiles(KINDS));

  render(_, { items, trouble }) {
    return html`<${Trouble} ...${trouble} />
      ${refused.map(({ name, message }) => html`<${Trouble} key=${name} message=${`${name}: ${message}`} />`)}
      ${reading && html`<p class="muted small dots" role="status">${text("dialogs.import.reading", { name: reading })}</p>`}
      ${items?.length === 0 && !reading && html`<p class="small">${text("memory.documents.none")}</p>`}
      <${Rows}><ul aria-label=${text("memory.longterm.titles.documents")}>${items?.map(this.row)}</ul><//>
      ${holder.may.change && html`<button class="quiet" onClick=${this.add}>${text("memory.documents.add")}</button>`}`;
  }

  row = ({ id, title, uri, pages, updated_at: at }) => {
    const forget = () => api.del(`/api/documents/${encodeURIComponent(id)}`).catch(api.unlessGone);
    const means = text("memory.documents.forget_means", { title });
    return html`<${Item} key=${id} line=${title} means=${means} save=${forget} changed=${() => this.read()}>
        <p class="fact-foot">
          ${/^https?:/.test(uri ?? "") && URL.canParse(uri) && html`<a href=${uri} target="_blank" rel="noopener">${new URL(uri).hostname}</a>`}
          ${pages && html`<span>${text("memory.documents.pages", { count: pages })}</span>`}<span>${date(at)}</span>
        </p>
      <//>`;
  };
}
