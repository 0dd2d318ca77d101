// What those who run the server look at: jobs that failed, how long chats stay, the archives of those that went, webhooks.
import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { saveFile } from "../page/dom.js";
import { Component, Told, Trouble, html } from "../page/html.js";
import { emit, holder } from "../page/state.js";
import { date, hasText, moment, text } from "../page/words.js";
import { Webhooks } from "./webhooks.js";

const archivePath = ({ id }) => `/api/archives/${id}`;

export class Server extends Component {
  state = { jobs: [], archives: [], policy: null, note: "" };

  async load() {
    const [jobs, archives, policy] = await Promise.all([
      api.all("/api/jobs", { state: "failed" }),
      api.all("/api/archives"),
      holder.may.tenant ? api.get("/api/retention") : null,
    ]);
    return { jobs, archives, policy };
  }

  /** Do something, and say that it is `done`. */
  done = (done, deed) =>
    this.perform(async () => {
      await deed();
      this.setState({ note: text(done) });
    });

  retry = (job) => this.done("dialogs.server.retried", () => api.post(`/api/jobs/${job.id}/retry`));

  restore = (archive) =>
    this.done("dialogs.server.restored", async () => {
      await api.post(`${archivePath(archive)}/restore`);
      emit("sessions");
    });

  erase = async (archive) => {
    const means = text("dialogs.server.erase_means", { title: archive.title });
    if (!(await confirmed(text("dialogs.server.erase_title"), means, text("page.delete")))) return;
    await this.done("dialogs.server.erased", () => api.del(archivePath(archive)));
  };

  save = async (archive) => {
    const { blob, name } = await api.download(archivePath(archive));
    saveFile(blob, name);
  };

  keep = (event) => {
    event.preventDefault();
    const { days, sessions, archive } = Object.fromEntries(new FormData(event.target));
    const policy = { days: Number(days) || null, sessions: Number(sessions) || null, archive: Boolean(archive) };
    this.done("dialogs.server.kept", () => api.put("/api/retention", policy));
  };

  render({ part: Part }, { jobs, archives, policy, note, trouble }) {
    return html`<p class="small" role="status">${note}</p>
      <${Trouble} ...${trouble} />
      <${Part} name="jobs">
        <p class="muted small">${text(jobs.length ? "dialogs.server.jobs_about" : "dialogs.server.no_jobs")}</p>
        <ul class="stack">${jobs.map(this.job)}</ul>
      <//>
      ${policy && html`<${Part} name="retention">${this.retention(policy)}<//>`}
      <${Part} name="archives">
        <p class="muted small">${text(archives.length ? "dialogs.server.archives_about" : "dialogs.server.no_archives")}</p>
        <ul class="stack">${archives.map(this.archive)}</ul>
      <//>
      ${holder.may.tenant && html`<${Part} name="webhooks"><${Webhooks} /><//>`}
    `;
  }

  job = (job) => html`<li class="row" key=${job.id}>
      <div class="grow"><strong>${text(`dialogs.server.kinds.${hasText(`dialogs.server.kinds.${job.kind}`) ? job.kind : "any"}`)}</strong>
        <span class="muted small">${moment(job.updated_at)}</span>
        <${Told} words=${`${job.kind}: ${job.error}`} /></div>
      <button onClick=${() => this.retry(job)}>${text("page.try_again")}</button>
    </li>`;

  retention = ({ days, sessions, archive }) => html`<form class="stack" onSubmit=${this.keep}>
      <p class="muted small">${text("dialogs.server.retention_about")}</p>
      <div class="row bottom">
        ${Object.entries({ days, sessions }).map(
          ([name, value]) => html`<label class="field grow">${text(`dialogs.server.${name}`)}
            <input type="number" name=${name} min="1" defaultValue=${value ?? ""} placeholder=${text("dialogs.server.unlimited")} /></label>`,
        )}
      </div>
      <label class="check start"><input type="checkbox" name="archive" defaultChecked=${archive} /> ${text("dialogs.server.archive")}</label>
      <div class="row end"><button type="submit">${text("page.save")}</button></div>
    </form>`;

  archive = (archive) => html`<li class="row wrap" key=${archive.id}>
      <span class="grow">${archive.title || text("page.untitled_chat")} <span class="muted small">${date(archive.created_at)}</span></span>
      <button onClick=${() => this.restore(archive)}>${text("chat.sessions.restore")}</button>
      <button onClick=${() => this.save(archive).catch(({ message }) => this.setState({ note: message }))}>${text("dialogs.person_data.export")}</button>
      <button class="danger" onClick=${() => this.erase(archive)}>${text("page.delete")}</button>
    </li>`;
}
