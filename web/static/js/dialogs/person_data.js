// All of a person's data: export it to a file, import it from a file, or erase it.
//
// Guarantee: data is erased only after the person has typed a word to confirm.  Then the page shows the receipt.
import * as api from "../page/api.js";
import { confirmed, openDialog } from "../page/dialog.js";
import { saveFile } from "../page/dom.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { closePanel } from "../page/panels.js";
import { emit, whose } from "../page/state.js";
import { moment, number, text, textParts } from "../page/words.js";
import { backlogElement, showBacklog } from "./backlog.js";
import { importElement, importFiles } from "./import.js";

// What the server counts, in display order.
const COUNTED = [
  ...["sessions", "messages", "facts", "summaries", "edited_summaries", "turns", "fact_revisions"],
  ...["items", "item_versions", "archives", "jobs", "index_documents"],
];

const label = (key) => text(`dialogs.person_data.labels.${key}`);

/** `leave()` closes the dialog around it. */
export class PersonData extends Component {
  work = createRef();
  file = createRef();
  state = { note: "" };

  componentDidMount() {
    this.work.current.append(importElement, backlogElement);
    showBacklog();
  }

  /** Do one thing at a time.  `deed()` resolves to what to say then. */
  run = (note, deed) => async () => {
    if (this.state.busy) return;
    let done = "";
    this.setState({ note });
    await this.attempt(async () => (done = await deed()));
    this.setState({ note: done });
  };

  exportAs = (format) =>
    this.run(text("dialogs.person_data.exporting"), async () => {
      const { blob, name } = await api.download(`${api.personPath()}/export?format=${format}`);
      saveFile(blob, name);
      return text("dialogs.person_data.exported", { name });
    });

  eraseAll = this.run("", async () => {
    const user = whose();
    const kept = await api.find(api.personPath());
    if (!kept) return text("dialogs.person_data.nothing", { user });
    const count = (kind) => text(`dialogs.import.counts.${kind}`, { count: kept[kind] });
    const counts = ["sessions", "messages", "facts"].map(count).join(", ");
    const means = text("dialogs.person_data.erase_means", { user, counts });
    const typed = text("dialogs.person_data.erase_typed");
    const title = text("dialogs.person_data.erase_title");
    if (!(await confirmed(title, means, text("dialogs.person_data.erase"), { typed }))) return "";
    const receipt = await api.del(api.personPath());
    emit("person"); // removes the data from the page
    await showReceipt(receipt);
    this.props.leave();
    closePanel(); // on a phone the list of chats covers it
    return "";
  });

  chosen = ({ target }) => {
    importFiles([...target.files]);
    target.value = ""; // so that the same file can be chosen again
  };

  render(_, { busy, note, trouble }) {
    const accepted = text("dialogs.import.accepted");
    const accept = ".json,.jsonl,.md,.zip,application/json,application/zip";
    const told = textParts("dialogs.person_data.whose", { user: html`<strong>${whose()}</strong>` });
    return html`<div class="person">
        <div class="row wrap">
          <p class="grow">${told}</p>
          <button onClick=${this.exportAs("json")}>${text("dialogs.person_data.export")}</button>
          <button onClick=${this.exportAs("markdown")}>${text("dialogs.person_data.export_to_read")}</button>
          <button title=${accepted} onClick=${() => this.file.current.click()}>${text("dialogs.import.choose")}</button>
          <button class="danger" onClick=${this.eraseAll}>${text("dialogs.person_data.erase")}</button>
          <input type="file" multiple hidden accept=${accept} ref=${this.file} onChange=${this.chosen} />
        </div>
        <p class="small ${busy && note ? "muted dots" : ""}" role="status">${note}</p>
        <${Trouble} ...${trouble} />
        <div class="stack" ref=${this.work} />
      </div>`;
  }
}

function showReceipt(receipt) {
  const { user_id, space, erased_at: at, erased, pending = [] } = receipt;
  const save = () => {
    const words = JSON.stringify(receipt, null, 2);
    saveFile(new Blob([words], { type: "application/json" }), `recap-erased-${at.slice(0, 10)}.json`);
  };
  const row = (key) => html`<tr><th scope="row">${label(key)}</th><td>${number(erased[key])}</td></tr>`;
  const content = (close) => html`<p>${text("dialogs.person_data.erased", { user: user_id ?? space, at: moment(at) })}</p>
    <table class="receipt"><caption class="visually-hidden">${text("dialogs.person_data.receipt")}</caption><tbody>${COUNTED.map(row)}</tbody></table>
    ${pending.length > 0 && html`<p class="notice">${text("dialogs.person_data.pending", { places: pending.map(label).join(", ") })}</p>`}
    <div class="row end">
      <button onClick=${save}>${text("dialogs.person_data.download_receipt")}</button>
      <button class="primary" autofocus onClick=${() => close()}>${text("dialogs.person_data.close_receipt")}</button>
    </div>`;
  return openDialog(text("dialogs.person_data.erased_title"), content);
}
