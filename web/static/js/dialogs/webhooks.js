// Webhooks: addresses that events are posted to, each with its last deliveries.  A secret is shown once.
import * as api from "../page/api.js";
import { confirmed } from "../page/dialog.js";
import { Component, Told, Trouble, html } from "../page/html.js";
import { moment, text } from "../page/words.js";

const PATH = "/api/webhooks";

export class Webhooks extends Component {
  state = { items: [], secret: "" };

  load = () => api.get(PATH);
  change = (deed) => this.perform(async () => this.setState({ secret: "", ...(await deed()) }));

  add = (event) => {
    event.preventDefault();
    const form = event.target;
    const { url, words } = Object.fromEntries(new FormData(form));
    this.change(async () => {
      const { secret } = await api.post(PATH, { url: String(url).trim(), words: Boolean(words) });
      form.reset();
      return { secret };
    });
  };

  turn = (hook, enabled) => this.change(() => api.patch(`${PATH}/${hook.id}`, { enabled }));
  test = (hook) => this.change(() => api.post(`${PATH}/${hook.id}/test`));

  erase = async (hook) => {
    const means = text("dialogs.webhooks.delete_means", { url: hook.url });
    if (!(await confirmed(text("dialogs.webhooks.delete_title"), means, text("page.delete")))) return;
    await this.change(() => api.del(`${PATH}/${hook.id}`));
  };

  render(_, { items, secret, busy, trouble }) {
    return html`<p class="muted small">${text("dialogs.webhooks.about")}</p>
      <ul class="stack">${items.map(this.hook)}</ul>
      <${Trouble} ...${trouble} />
      <div role="status">${secret && html`<p class="small">${text("dialogs.webhooks.secret")}</p><code>${secret}</code>`}</div>
      <form class="stack" noValidate onSubmit=${this.add}>
        <label class="field">
          ${text("dialogs.webhooks.address")}
          <input name="url" type="url" placeholder="https://example.com/recap" autocomplete="off" />
        </label>
        <label class="check start"><input type="checkbox" name="words" /> ${text("dialogs.webhooks.words")}</label>
        <div class="row end"><button type="submit" disabled=${busy}>${text("dialogs.webhooks.add")}</button></div>
      </form>`;
  }

  hook = (hook) => html`<li key=${hook.id}>
      <div class="row wrap">
        <span class="grow">
          <strong>${hook.url}</strong>
          <span class="muted small"> ${[hook.user_id, hook.types.join(", ") || text("dialogs.webhooks.all")].filter(Boolean).join(" · ")}</span>
        </span>
        <label class="check"><input type="checkbox" checked=${hook.enabled} onChange=${({ target }) => this.turn(hook, target.checked)} />
          ${text("dialogs.webhooks.on")}</label>
        <button onClick=${() => this.test(hook)}>${text("dialogs.webhooks.test")}</button>
        <button class="danger" onClick=${() => this.erase(hook)}>${text("page.delete")}</button>
      </div>
      <${Trouble} message=${hook.problem && text("dialogs.webhooks.disabled")} told=${hook.problem} />
      <details>
        <summary>${text("dialogs.webhooks.deliveries")}</summary>
        ${!hook.deliveries.length && html`<p class="muted small">${text("dialogs.webhooks.none_yet")}</p>`}
        <ul class="small">
          ${hook.deliveries.map(
            ({ at, type, status, error }) => html`<li>${moment(at)} · ${type} · ${
              text(error ? "dialogs.webhooks.failed" : "dialogs.webhooks.delivered", { status: String(status) })
            }<${Told} words=${error} /></li>`,
          )}
        </ul>
      </details>
    </li>`;
}
