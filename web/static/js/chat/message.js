// One message: its text, its time, what Recap remembered of it, and what can be done with it.
import { EditForm } from "../memory/edit_form.js";
import * as api from "../page/api.js";
import { codeBlock, colour, copyText } from "../page/code.js";
import { PHONE, announce } from "../page/dom.js";
import { Component, Filled, Trouble, html } from "../page/html.js";
import { render, typeset } from "../page/markdown.js";
import { Menu } from "../page/menu.js";
import { Icon } from "../page/rows.js";
import { emit, holder } from "../page/state.js";
import { clock, modelName, moment, speaker, text, textParts } from "../page/words.js";
import { Attached, cameWith, wordsOf } from "./attachments.js";
import { Why } from "./why.js";

const LONG = 3000; // characters, or LINES, from which on a message of the person is folded
const LINES = 40;
const ENDS = ["interrupted", "length", "cut_off"]; // reasons that are told under a reply

/**
 * A stored message.  `turn` is the turn of a reply, with its cost and recall; `facts` are those that its turn brought;
 * `versions` are the ids of all its versions; `asked` is the message that the last reply answers; `acts`: see Messages.
 * It is drawn anew only when one of these is another one: drawing has to be fast in long chats.
 */
export class Message extends Component {
  state = { explained: false, judged: null, copied: null }; // judged: what was thought of it just now

  shouldComponentUpdate(props, state) {
    return state !== this.state || Object.keys(props).some((name) => props[name] !== this.props[name]);
  }

  why = () => this.setState(({ explained }) => ({ explained: !explained }));

  get thumbs() {
    return this.state.judged ?? this.props.message.thumbs;
  }

  copy = async () => {
    this.setState({ copied: await copyText(this.props.message.content) });
    setTimeout(() => this.setState({ copied: null }), 1500);
  };

  judge = (thumbs) => () => this.setState({ judged: this.thumbs === thumbs ? "none" : thumbs });

  /** What can be done, as [name, act]: what has an icon, and what only the menu has. */
  get deeds() {
    const { message, turn, asked, temporary, acts } = this.props;
    const { id, role, hidden_at: hidden } = message;
    const judged = turn?.message_id === id && !temporary;
    const icons = [
      turn?.usage && ["why", this.why],
      ["copy", this.copy],
      judged && ["up", this.judge("up")],
      judged && ["down", this.judge("down")],
      !temporary && role === "user" && ["edit", () => acts.edit(id)],
      !temporary && asked && ["retry", () => acts.retry(asked)],
    ];
    const others = [
      !temporary && holder.may.change && [hidden ? "show" : "hide", () => acts.hide(message, !hidden)],
      !temporary && holder.may.change && ["erase", () => acts.erase(message)],
    ];
    return [icons.filter(Boolean), others.filter(Boolean)];
  }

  render({ message, turn, facts, versions, acts }, { explained, judged, copied }) {
    const { id, role, content, created_at: at, hidden_at: hidden } = message;
    const own = role === "user" || role === "assistant";
    const came = cameWith(message);
    const explains = turn && explained;
    const [icons, others] = this.deeds;
    const pressed = { why: ["aria-expanded", explains], up: ["aria-pressed", this.thumbs === "up"], down: ["aria-pressed", this.thumbs === "down"] };
    const icon = ([name, act]) => {
      const label = (name === "copy" && copied) || text(`chat.message.${name}`);
      const [state, value] = pressed[name] ?? [];
      const looks = ["edit", "retry"].includes(name) ? "icon when-free" : "icon";
      return html`<button class=${looks} aria-label=${label} title=${label} ...${state && { [state]: String(Boolean(value)) }} onClick=${act}>
        <${Icon} name=${name === "copy" && copied ? "done" : name} />${name === "why" && ` ${label}`}
      </button>`;
    };
    const shown = PHONE ? icons.filter(([name]) => name === "why") : icons; // a phone has no room for all
    const entries = [...icons.filter((one) => !shown.includes(one)), ...others].map(([name, act]) => [text(`chat.message.${name}`), act]);
    return html`<article
        class="message ${own ? role : "other"} ${hidden ? "left-out" : ""}"
        data-id=${id}
        aria-label=${text("chat.message.label", { speaker: speaker(message), time: clock(at) })}
      >
        ${(!own || message.name) && html`<div class="who">${speaker(message)}</div>`}
        ${turn?.thought && html`<${Thought} thought=${turn.thought} />`}
        ${(wordsOf(message) || !came.length) && html`<${Body} role=${role} words=${wordsOf(message)} folded=${role === "user"} />`}
        ${came.length > 0 && html`<${Attached} list=${came} />`}
        ${message.refused && html`<${Refused} reason=${message.refused.reason} />`}
        ${hidden && html`<p class="remembered">${text("chat.message.hidden")}</p>`}
        <${Noted} how="remembered" facts=${facts || []} />
        <${Noted} how="forgot" facts=${turn?.message_id === id ? forgotten(turn) : []} />
        <div class="meta">
          ${ENDS.includes(turn?.finish_reason) && html`<span class="badge warn">${text(`chat.message.ends.${turn.finish_reason}`)}</span>`}
          ${versions && html`<${Versions} ids=${versions} shown=${id} show=${acts.showVersion} />`}
          <span class="deeds">
            ${shown.map(icon)}
            ${entries.length > 0 && html`<${Menu} label=${text("chat.message.more")} items=${entries} />`}
            <time datetime=${at} title=${moment(at)}>${clock(at)}</time>
            ${turn?.model && html`<span class="cut" title=${text("chat.message.model")}>${modelName(turn.model)}</span>`}
          </span>
        </div>
        ${judged && html`<${Feedback} key=${judged} turn=${turn} thumbs=${judged} />`}
        ${explains && html`<${Why} turn=${turn} reply=${content} jump=${acts.jump} />`}
      </article>`;
  }
}

/** Steps through the versions of a message, whose ids are `ids`.  `show(id)` shows another one. */
function Versions({ ids, shown, show }) {
  const at = ids.indexOf(shown);
  const place = text("chat.message.version", { number: at + 1, count: ids.length });
  const step = (to, mark, label) => html`
    <button class="quiet" aria-label=${label} title=${label} disabled=${!ids[to]} onClick=${() => show(ids[to])}>${mark}</button>`;
  return html`<span class="version-steps when-free" role="group" aria-label=${place} title=${place}>
      ${step(at - 1, "‹", text("chat.message.version_before"))} ${at + 1}/${ids.length}
      ${step(at + 1, "›", text("chat.message.version_after"))}
    </span>`;
}

/** Why no model reads a message any more; the server's words are in English. */
const Refused = ({ reason }) => html`<div class="notice" role="note"><p>${text("chat.message.refused")} <span lang="en">${reason}</span></p></div>`;

/** What the model forgot in a turn that this page has heard. */
const forgotten = ({ memory }) => (memory?.written ?? []).filter(({ action, undo }) => action === "forget" && undo);

const UNDO = {
  remembered: ({ id }) => api.del(`/api/facts/${id}`, { restore: true }).catch(api.unlessGone), // what it corrected holds again
  forgot: ({ undo: { path, body } }) => api.post(path, body),
};

/** The facts that a turn brought, or that the model forgot in it, each with a button that undoes that. */
function Noted({ how, facts }) {
  const list = facts.map((fact) => html`<${NotedFact} key=${fact.id ?? fact.fact_id} how=${how} fact=${fact} />`);
  return list.length > 0 && html`<p class="remembered">${textParts(`chat.message.${how}`, { facts: list })}</p>`;
}

class NotedFact extends Component {
  undo = () =>
    this.attempt(async () => {
      const { how, fact } = this.props;
      await UNDO[how](fact);
      this.setState({ undone: true });
      announce(text(`chat.message.undone_${how}`));
      emit("memory");
    });

  render({ how, fact }, { undone, busy, trouble }) {
    const means = text(`chat.message.undo_${how}`, { fact: fact.text });
    return html`<span>
        ${undone ? html`<del>${fact.text}</del>` : fact.text}${" "}
        ${!undone && holder.may.change && html`<button class="link" disabled=${busy} title=${means} onClick=${this.undo}>${text("chat.message.undo")}</button>`}
        <span class="problem" role="alert">${trouble?.message}</span>
      </span>`;
  }
}

/** What a model thought before its reply, folded.  Only this page knows it, until it is loaded again. */
export function Thought({ thought }) {
  return html`<details class="thought muted">
      <summary>${text("chat.message.thought", { count: thought.seconds })}</summary>
      <div class="typed">${thought.words.trim()}</div>
    </details>`;
}

/** The text: replies are rendered as Markdown.  All other messages are shown as typed, with their blocks of code; `folded` shows the beginning of a long one. */
export class Body extends Component {
  unfold = () => this.setState({ whole: true });

  render({ role, words, folded }, { whole }) {
    const reply = role === "assistant";
    const cut = folded && !whole && (words.length > LONG || words.split("\n", LINES + 1).length > LINES);
    return html`<${Filled} class="body ${reply ? "md" : "typed"} ${cut ? "folded" : ""}" dir=${reply ? null : "auto"} of=${words} make=${reply ? formatted : typed} />
      ${cut && html`<button class="link small" onClick=${this.unfold}>${text("chat.message.whole")}</button>`}`;
  }
}

function formatted(words) {
  const fragment = render(words);
  colour(fragment);
  typeset(fragment);
  return fragment;
}

const BEGINS = /^```\s*(\S*)/; // a block of code, with its language
const ENDS_BLOCK = /^```\s*$/;

/** Line by line, so that a text with many blocks that do not end takes no longer than another. */
function typed(words) {
  const fragment = document.createDocumentFragment();
  const lines = words.split("\n");
  const ends = lines.flatMap((line, at) => (ENDS_BLOCK.test(line) ? [at] : []));
  let text = [];
  for (let at = 0; at < lines.length; at++) {
    const begins = BEGINS.exec(lines[at]);
    while (ends[0] <= at) ends.shift();
    if (!begins || !ends.length) text.push(lines[at]);
    else {
      fragment.append(text.join("\n"), codeBlock(lines.slice(at + 1, ends[0]).join("\n"), begins[1]));
      text = [];
      at = ends[0];
    }
  }
  fragment.append(text.join("\n"));
  colour(fragment);
  return fragment;
}

const LEADS = { up: "examples", down: "instructions" }; // the part of memory that the thumbs change

/** What a person thinks of a reply, and what comes of it.  It tells the server when it is first drawn; then it asks what would have been better. `thumbs`: up, down, or none, which takes them back. */
class Feedback extends Component {
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
