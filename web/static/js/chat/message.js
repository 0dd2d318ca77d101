// One message: its text, its time, what Recap remembered of it, and its actions.

import * as api from "../page/api.js";
import { Copy, codeBlock, colour } from "../page/code.js";
import { announce } from "../page/dom.js";
import { Component, Filled, html } from "../page/html.js";
import { render } from "../page/markdown.js";
import { emit } from "../page/state.js";
import { clock, modelName, moment, speaker, text, textParts } from "../page/words.js";
import { Why } from "./why.js";

const ENDS = ["interrupted", "length", "cut_off"]; // reasons that are told under a reply

/**
 * A stored message.  `turn` is the turn of a reply, with its cost and recall; `facts` are those that its turn brought;
 * `versions` are the ids of all its versions; `asked` is the message that the last reply answers; `acts`: see Messages.
 * It is drawn anew only when one of these is another one: drawing has to be fast in long chats.
 */
export class Message extends Component {
  state = { explained: null }; // the turn that is explained

  shouldComponentUpdate(props, state) {
    return state !== this.state || Object.keys(props).some((name) => props[name] !== this.props[name]);
  }

  explain = () => {
    const { turn } = this.props;
    this.setState(({ explained }) => ({ explained: explained === turn ? null : turn }));
  };

  render({ message, turn, facts, versions, asked, temporary, acts }, { explained }) {
    const { id, role, content, created_at: at } = message;
    const own = role === "user" || role === "assistant";
    const explains = turn && explained === turn;
    return html`
      <article
        class="message ${own ? role : "other"}"
        data-id=${id}
        aria-label=${text("chat.message.label", { speaker: speaker(message), time: clock(at) })}
      >
        ${(!own || message.name) && html`<div class="who">${speaker(message)}</div>`}
        ${turn?.thought && html`<${Thought} thought=${turn.thought} />`}
        <${Body} role=${role} words=${content} />
        ${message.refused && html`<${Refused} reason=${message.refused.reason} />`}
        ${facts && html`<${Remembered} facts=${facts} />`}
        <div class="meta">
          <time datetime=${at} title=${moment(at)}>${clock(at)}</time>
          ${ENDS.includes(turn?.finish_reason) &&
          html`<span class="badge warn">${text(`chat.message.ends.${turn.finish_reason}`)}</span>`}
          ${turn?.model && html`<span title=${text("chat.message.model")}>${modelName(turn.model)}</span>`}
          ${turn?.usage &&
          html`
            <button class="quiet" aria-expanded=${explains} onClick=${this.explain}>
              ${text("chat.why.button", { tokens: turn.usage.prompt_tokens })}
            </button>
          `}
          <${Copy} words=${content} />
          ${versions && html`<${Versions} ids=${versions} shown=${id} show=${acts.showVersion} />`}
          ${!temporary &&
          html`
            ${role === "user" && html`<${Action} name="edit" class="when-free" act=${() => acts.edit(id)} />`}
            ${asked && html`<${Action} name="retry" class="when-free" act=${() => acts.retry(asked)} />`}
            <${Action} name="erase" act=${() => acts.erase(message)} />
          `}
        </div>
        ${explains && html`<${Why} turn=${turn} reply=${content} jump=${acts.jump} />`}
      </article>
    `;
  }
}

const Action = ({ name, act, ...rest }) => html`
  <button class="quiet ${rest.class}" title=${text(`chat.message.${name}_means`)} onClick=${act}>
    ${text(`chat.message.${name}`)}
  </button>
`;

/** Steps through the versions of a message, whose ids are `ids`.  `show(id)` shows another one. */
function Versions({ ids, shown, show }) {
  const at = ids.indexOf(shown);
  const place = text("chat.message.version", { number: at + 1, count: ids.length });
  const step = (to, mark, label) => html`
    <button class="quiet" aria-label=${label} title=${label} disabled=${!ids[to]} onClick=${() => show(ids[to])}>
      ${mark}
    </button>
  `;
  return html`
    <span class="version-steps when-free" role="group" aria-label=${place} title=${place}>
      ${step(at - 1, "‹", text("chat.message.version_before"))} ${at + 1}/${ids.length}
      ${step(at + 1, "›", text("chat.message.version_after"))}
    </span>
  `;
}

/** Why no model reads a message any more; the server's words are in English. */
const Refused = ({ reason }) => html`
  <div class="notice" role="note">
    <p>${text("chat.message.refused")} <span lang="en">${reason}</span></p>
  </div>
`;

function Remembered({ facts }) {
  const list = facts.map((fact) => html`<${NewFact} key=${fact.id} fact=${fact} />`);
  return html`<p class="remembered">${textParts("chat.message.remembered", { facts: list })}</p>`;
}

/** A fact with a button that forgets it; what it corrected holds again. */
class NewFact extends Component {
  undo = () =>
    this.attempt(async () => {
      await api.del(`/api/facts/${this.props.fact.id}`, { restore: true }).catch(api.unlessGone);
      announce(text("chat.message.forgotten"));
      emit("memory");
    });

  render({ fact }, { trouble }) {
    const means = text("chat.message.undo_means", { fact: fact.text });
    return html`
      <span>
        ${fact.text}${" "}
        <button class="link" aria-label=${means} title=${means} onClick=${this.undo}>
          ${text("chat.message.undo")}
        </button>
        <span class="problem" role="alert">${trouble?.message}</span>
      </span>
    `;
  }
}

/** What a model thought before its reply, folded.  Only this page knows it, until it is loaded again. */
export function Thought({ thought }) {
  return html`
    <details class="thought muted">
      <summary>${text("chat.message.thought", { count: thought.seconds })}</summary>
      <div class="typed">${thought.words.trim()}</div>
    </details>
  `;
}

/** The text: replies are rendered as Markdown.  All other messages are shown as typed, with their blocks of code. */
export function Body({ role, words }) {
  const reply = role === "assistant";
  return html`<${Filled} class="body ${reply ? "md" : "typed"}" of=${words} make=${reply ? formatted : typed} />`;
}

function formatted(words) {
  const fragment = render(words);
  colour(fragment);
  return fragment;
}

// A block of code, its language and its text.
const FENCED = /\n?^```[^\S\n]*(\S*)[^\n]*\n([^]*?)\n?^```[^\S\n]*$\n?/m;

function typed(words) {
  const fragment = document.createDocumentFragment();
  words.split(FENCED).forEach((part, at, parts) => {
    if (at % 3 === 0) fragment.append(part); // then the language of a block, and its code
    if (at % 3 === 2) fragment.append(codeBlock(part, parts[at - 1]));
  });
  colour(fragment);
  return fragment;
}
