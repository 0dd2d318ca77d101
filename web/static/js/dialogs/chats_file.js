// Files with chats that a person chose or dropped: what of them to send, in parts.
//
// Guarantee: of a .zip only the chats are read, no file is in memory as a whole, and nothing is sent of a file that is
// damaged or of another kind.

import { hasText, text } from "../page/texts.js";

const PART = 500_000; // bytes after which a part ends with its chat: few enough for any proxy, and to see progress
const CHATS = /(?:^|\/)conversations(?:-\d+)?\.json$/; // in ChatGPT's export
const KINDS = { "text/html": "web_page", "application/pdf": "pdf" };
const [QUOTE, BACKSLASH, COMMA] = [...'"\\,'].map((mark) => mark.charCodeAt());
const STEPS = new Int8Array(256); // how much deeper a bracket leads
for (const mark of "[{") STEPS[mark.charCodeAt()] = 1;
for (const mark of "]}") STEPS[mark.charCodeAt()] = -1;

/** The parts in order, each `{ body, chats }`; a document that has to be sent whole has no `chats`.  Throws Error in words. */
export async function partsOf(files) {
  const parts = [];
  for (const file of inOrder([...files], "name")) {
    for (const document of await documentsIn(file)) parts.push(...(await cut(document, file.name)));
  }
  return parts;
}

const inOrder = (items, name) => items.sort((a, b) => a[name].localeCompare(b[name], undefined, { numeric: true }));
const wrong = (problem, values) => new Error(text(`dialogs.import.wrong.${problem}`, values));

async function documentsIn(file) {
  const { name } = file;
  const start = await file.slice(0, 64).text().catch(() => {
    throw wrong("unreadable", { name });
  });
  if (start.startsWith("PK")) return documentsInZip(file);
  if (/^\s*[[{]/.test(start)) return [file];
  const kind = KINDS[file.type] ?? file.type.split("/")[0];
  throw wrong(hasText(`dialogs.import.wrong.${kind}`) ? kind : "unknown", { name });
}

async function documentsInZip(file) {
  const { name } = file;
  await import("../../vendor/zip.mjs"); // which sets a global name
  const { BlobReader, BlobWriter, ZipReader, configure } = globalThis.zip;
  configure({ useWebWorkers: false }); // the page's policy allows none
  const damaged = () => {
    throw wrong("damaged", { name });
  };
  const entries = await new ZipReader(new BlobReader(file)).getEntries().catch(damaged);
  const chats = inOrder(entries.filter(({ filename }) => CHATS.test(filename)), "filename");
  if (!chats.length) throw wrong("no_chats", { name, inside: entries.slice(0, 3).map(({ filename }) => filename).join(", ") });
  return Promise.all(chats.map((entry) => entry.getData(new BlobWriter(), { checkSignature: true }).catch(damaged)));
}

/** Cut an array of chats between them.  An export of Recap stays whole, because its facts belong to its chats. */
async function cut(document, name) {
  const parts = [];
  let [depth, at, begin, chats] = [0, 0, 0, 0];
  let [quoted, escaped] = [false, false];
  const part = (end) => {
    parts.push({ body: new Blob(["[", document.slice(begin, end), "]"]), chats });
    chats = 0;
  };
  const reader = document.stream().getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    for (const byte of read.value) {
      at += 1;
      if (escaped) escaped = false;
      else if (quoted) [quoted, escaped] = [byte !== QUOTE, byte === BACKSLASH];
      else if (byte === QUOTE) quoted = true;
      else if (STEPS[byte]) {
        depth += STEPS[byte];
        if (depth === 1 && STEPS[byte] < 0) chats += 1;
        else if (depth === 1) begin = at;
        else if (depth === 0 && chats) part(at - 1);
      } else if (byte === COMMA && depth === 1 && at - begin > PART && chats) {
        part(at - 1);
        begin = at;
      }
    }
  }
  if (depth || quoted) throw wrong("cut_off", { name });
  const isArray = /^\s*\[/.test(await document.slice(0, 64).text());
  return isArray && parts.length ? parts : [{ body: document, chats: 0 }];
}
