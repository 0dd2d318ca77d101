// The reply in progress: its text so far, and what Recap is doing.
import { Component, Filled, html } from "../page/html.js";
import { render } from "../page/markdown.js";
import { text } from "../page/words.js";
import { Thought } from "./message.js";
import { keepEnd } from "./scrolling.js";

/** `turn` tells when it has changed, also `progress(turn)`.  Its text is drawn at most once a frame. */
export class Writing extends Component {
  componentDidMount() {
    const { turn, progress } = this.props;
    turn.changed = () => {
      progress(turn);
      this.due ||= requestAnimationFrame(this.draw);
    };
    progress(turn);
  }

  draw = () => {
    this.due = 0;
    this.forceUpdate(keepEnd);
  };

  componentWillUnmount() {
    this.props.turn.changed = () => {};
    cancelAnimationFrame(this.due);
  }

  render({ turn }) {
    const { reply, thought, heard, stopping } = turn;
    return html`<article class="message assistant" aria-label=${text("chat.message.writing")} aria-busy="true">
        ${thought && html`<${Thought} thought=${thought} />`} ${reply && html`<${Filled} class="body md" of=${reply} make=${render} />`}
        <div class="body muted dots" hidden=${Boolean(reply) && heard && !stopping}>${doing(turn)}</div>
      </article>`;
  }
}

function doing({ lost, stopping, heard, reply, told: { memory } }) {
  if (lost) return text("chat.message.lost");
  if (stopping) return text("chat.message.stopping");
  if (!heard) return reply ? text("chat.message.waiting_for_rest") : text("chat.message.waiting_for_reply");
  if (!memory) return text("chat.message.looking_back");
  const found = memory.excerpts.length;
  return found ? text("chat.message.found", { count: found }) : text("chat.message.replying");
}
