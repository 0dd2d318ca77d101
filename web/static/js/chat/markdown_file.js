// Saves a chat as a Markdown file: each message under who said it and when.
import * as api from "../page/api.js";
import { saveFile } from "../page/dom.js";
import { moment, speaker, text } from "../page/words.js";

/** Throws ApiError. */
export async function saveChat(sessionId) {
  const path = api.sessionPath(sessionId);
  const [{ title }, messages] = await Promise.all([api.get(path), api.all(`${path}/messages`)]);
  const head = (message) => `## ${speaker(message)}, ${moment(message.created_at)}`;
  const parts = messages.map((message) => `${head(message)}\n\n${message.content}\n`);
  const words = [`# ${title || text("page.untitled_chat")}\n`, ...parts].join("\n");
  const name = title.replace(/[\s\\/:*?"<>|\p{Cc}]+/gu, " ").trim(); // without what file systems forbid
  saveFile(new Blob([words], { type: "text/markdown" }), `${name || text("chat.thread.file")}.md`);
}
