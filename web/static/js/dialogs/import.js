// Imports files with chats, and shows how far that is.
//
// Guarantee: an import that ends early says how many chats are stored.  It can go on from there, and the same file can
// be imported again: nothing is stored twice.  No model is called (see backlog.js).
import * as api from "../page/api.js";
import { announce } from "../page/dom.js";
import { Trouble, html, render } from "../page/html.js";
import { emit, person, space } from "../page/state.js";
import { text } from "../page/words.js";
import { showBacklog } from "./backlog.js";
import { partsOf } from "./chats_file.js";

const COUNTED = ["sessions", "messages", "facts", "summaries", "turns", "items"];

/** Shows the import.  There is one, which goes on while no dialog shows it. */
export const importElement = document.createElement("div");
const show = (content) => render(content, importElement);
let last = Promise.resolve(); // the import that goes on, after which another one begins

/** Import files of the types that `partsOf` reads. */
export function importFiles(files) {
  const owner = space() ? { space: space() } : { user_id: person() };
  const name = files.map((file) => file.name).join(", ");
  run(async () => {
    show(html`<p class="muted small dots">${text("dialogs.import.reading", { name })}</p>`);
    await send({ name, owner, parts: await partsOf(files), stored: 0, answers: [] });
  });
}

const run = (deed) => (last = last.then(deed).catch(({ message, told }) => show(html`<${Trouble} message=${message} told=${told} />`)));

/** Send the parts that are left. */
async function send(work) {
  const { name, owner, parts, answers } = work;
  const count = work.stored + parts.reduce((sum, part) => sum + part.chats, 0);
  try {
    while (parts.length) {
      show(html`<${Progress} name=${name} stored=${work.stored} count=${count} />`);
      answers.push(await api.post("/api/import", parts[0].body, owner));
      work.stored += parts.shift().chats;
    }
    finished(name, answers);
  } catch ({ message, told, status }) {
    const kept = work.stored ? `${text("dialogs.import.stopped", { stored: work.stored, count })} ` : "";
    const goOn = ![400, 422].includes(status) && (() => run(() => send(work))); // what the file has, it has the next time too
    show(html`<${Trouble} message=${kept + message} told=${told} action=${text("dialogs.import.go_on")} again=${goOn} />`);
  }
  if (answers.length) for (const event of ["sessions", "memory"]) emit(event);
  showBacklog();
}

/** How many of the chats are stored; without a `count`, only that something goes on. */
function Progress({ name, stored, count }) {
  const whole = text("dialogs.import.sending_whole", { name });
  const words = count ? text("dialogs.import.sending", { stored, count }) : whole;
  const far = count ? { max: count, value: stored } : {};
  return html`<p class="small">${words}</p><progress aria-label=${text("dialogs.import.progress")} ...${far} />`;
}

function finished(name, answers) {
  const counts = (key) => {
    const sums = COUNTED.map((kind) => [kind, answers.reduce((sum, answer) => sum + (answer[key][kind] ?? 0), 0)]);
    const found = sums.filter(([, count]) => count);
    return found.map(([kind, count]) => text(`dialogs.import.counts.${kind}`, { count })).join(", ");
  };
  const [created, known] = [counts("created"), counts("known")];
  const count = answers.reduce((sum, answer) => sum + Object.keys(answer.renamed).length, 0);
  const skipped = answers.flatMap((answer) => answer.skipped_items);
  const left = answers.reduce((sum, answer) => sum + answer.skipped, 0);
  const times = [...new Set(answers.flatMap((answer) => answer.unread_times))];
  const lines = [
    created ? text("dialogs.import.done", { name, created }) : text("dialogs.import.known_all", { name }),
    created && known && text("dialogs.import.known", { known }),
    count > 0 && text("dialogs.import.renamed", { count }),
    left > 0 && text("dialogs.import.skipped", { count: left, items: skipped.join(", ") }),
    times.length > 0 && text("dialogs.import.unread_times", { times: times.join("; ") }),
    created && text("dialogs.import.only_stored"),
  ];
  show(html`<div class="notice done">${lines.map((line) => line && html`<p>${line}</p>`)}</div>`);
  announce(lines[0]);
}
