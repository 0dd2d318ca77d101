// What a person thinks of a reply, and what comes of it: a good answer that is kept, or a proposed instruction.
import { EditForm } from "../memory/edit_form.js";
import * as api from "../page/api.js";
import { Component, Trouble, html } from "../page/html.js";
import { emit } from "../page/state.js";
import { text } from "../page/words.js";

const LEADS = { up: "examples", down: "instructions" }; // the part of memory that the thumbs change

/** It tells the server when it is first drawn; then it asks what would have been better. `thumbs`: up, down, or none, which takes them back. */
export class Feedback extends Component {
  state = { said: false };
  load = () => this.give("");

  async give(words) {
    const { turn, thumbs } = this.props;
    const { session_id, message_id } = turn;
    await api.post("/api/feedback", { session_id, message_id, thumbs, text: words });
    this.setState({ said: Boolean(words) || thumbs !== "down", given: true });
    emit("memory");
  }

  render({ thumbs }, { given, said, trouble }) {
    return html`<div class="feedback" role="group" aria-label=${text("chat.feedback.label")}>
        <${Trouble} ...${trouble} />
        ${given && html`<p class="small" role="status">${text(`chat.feedback.${said ? thumbs : "asks"}`)}${" "}
          ${LEADS[thumbs] && html`<button class="link" onClick=${() => emit("longterm", LEADS[thumbs])}>${text(`chat.feedback.to_${thumbs}`)}</button>`}
        </p>`}
        ${given && !said && html`<${EditForm} class="item-form" action=${text("page.send")} save=${({ words }) => this.give(words.trim())}
          cancel=${() => this.setState({ said: true })}>
          <textarea name="words" rows="2" aria-label=${text("chat.feedback.better")} placeholder=${text("chat.feedback.example")} />
        <//>`}
      </div>`;
  }
}
