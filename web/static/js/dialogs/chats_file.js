// Files with chats that a person chose or dropped: what of them to send, in parts.
//
// The server reads what other programs wrote.  Here a list of chats is only cut between them, to see progress, and the
// lists are taken out of a .zip, which may have gigabytes of pictures beside.  Nothing is sent of what is no text.
import { hasText, text } from "../page/words.js";

const PART = 500_000; // characters after which a part ends: few enough for any proxy, and to see progress
const CHATS =
  /(?:^|\/)(?:(?:conversations(?:-\d+)?|memories|projects(?:\/[^/]+)?|prod-grok-backend|chat-[^/]+)\.json|MyActivity\.(?:json|html))$/;
const START = /^\s*(?:[[{"#*-]|Conversation,)/; // of JSON, Markdown, or Copilot's CSV
const TEXT = /\.(?:json|jsonl|ndjson|md|html|zip)$/;
const ACTIVITY = 'class="outer-cell'; // of Google's page, after its style
const KINDS = { "text/html": "web_page", "application/pdf": "pdf" };

/** The parts in order, each `{ body, chats }`; without `chats` if it has to be sent whole.  Throws Error in words. */
export async function partsOf(files) {
  const parts = [];
  for (const file of inOrder([...files], "name")) {
    for (const document of await documentsIn(file)) parts.push(...(await cut(document, file.name)));
  }
  return parts;
}

const inOrder = (items, name) => items.sort((a, b) => a[name].localeCompare(b[name], undefined, { numeric: true }));
const wrong = (problem, values) => new Error(text(`dialogs.import.wrong.${problem}`, values));

/** Whether a file is Google's page of what a person did, which has the chats with Gemini. */
export const isActivity = async (file) =>
  /\.html$/i.test(file.name) && (await file.slice(0, 1 << 20).text()).includes(ACTIVITY);

async function documentsIn(file) {
  const { name } = file;
  const start = await file.slice(0, 64).text().catch(() => {
    throw wrong("unreadable", { name });
  });
  if (start.startsWith("PK")) return documentsInZip(file);
  if (START.test(start)) return [file];
  if (await isActivity(file)) return [file];
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
  const inside = entries.slice(0, 3).map(({ filename }) => filename);
  if (!chats.length && entries.some(({ filename }) => TEXT.test(filename))) return [file];
  if (!chats.length) throw wrong("no_chats", { name, inside: inside.join(", ") });
  return Promise.all(chats.map((entry) => entry.getData(new BlobWriter(), { checkSignature: true }).catch(damaged)));
}

/** Cut a list of chats between them.  Anything else stays whole, because its parts may belong together. */
async function cut(document, name) {
  const whole = [{ body: document, chats: 0 }];
  if (!/^\s*\[/.test(await document.slice(0, 64).text())) return whole;
  const chats = await new Response(document).json().catch(() => {
    throw wrong("cut_off", { name });
  });
  if (!chats[0]?.mapping && !chats[0]?.chat_messages) return whole;
  const parts = [];
  let size = PART;
  for (const chat of chats.map((one) => JSON.stringify(one))) {
    if (size >= PART) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1).push(chat);
    size += chat.length;
  }
  return parts.map((part) => ({ body: new Blob([`[${part}]`]), chats: part.length }));
}
