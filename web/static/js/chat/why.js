// Explains a reply: all that its prompt held of the chat, of the person and of earlier chats, why it was recalled, and how many tokens it took.
import * as api from "../page/api.js";
import { Component, Trouble, createRef, html } from "../page/html.js";
import { emit } from "../page/state.js";
import { date, hasText, number, shortened, speaker, text, titleOf, when } from "../page/words.js";
import { bringIntoView } from "./scrolling.js";
import { enter } from "./spaces.js";

const NEAREST = 2; // messages of the chat that are shown
const QUOTED = 300; // characters of each
const FEW = 8; // lines of a part that is not folded
const UNHELPFUL = "/api/recall/unhelpful";

/** The explanation of the reply of `turn`, whose text is `reply`.  `jump(session, message)` goes to a message. */
export class Why extends Component {
  place = createRef();
  state = { memory: null, near: [], marks: [] };
  show = () => bringIntoView(this.place.current);

  async load() {
    this.show();
    const { turn, reply } = this.props;
    const path = `${api.sessionPath(turn.session_id)}/turns/${turn.message_id}`;
    const read = [turn.memory ? turn : api.get(path), nearest(turn, reply), marksOf(turn)];
    const [{ memory }, near, marks] = await Promise.all(read);
    return { memory, near, marks };
  }

  componentDidUpdate(props, { memory }) {
    if (memory !== this.state.memory) this.show();
  }

  render({ turn, jump }, { memory, near, marks, busy, trouble }) {
    return html`<section class="why" aria-label=${text("chat.why.title")} ref=${this.place}>
        <${Trouble} ...${trouble} />
        ${busy && html`<p class="muted dots">${text("chat.why.reading")}</p>`}
        ${memory &&
        html`<${ThisChat} memory=${memory} near=${near} jump=${jump} />
          <${AboutYou} memory=${memory} jump=${jump} />
          <${FurtherBack} memory=${memory} turn=${turn} marks=${marks} jump=${jump} />
          ${(memory.others ?? []).map((other) => html`<${Elsewhere} ...${other} jump=${jump} />`)}
          <${Tokens} usage=${turn.usage} />
        `}
      </section>`;
  }
}

/** The excerpts of a turn that the person marked as not helpful. */
const marksOf = ({ session_id, user_message_id: message_id }) => session_id && message_id ? api.all(UNHELPFUL, { session_id, message_id }) : [];

/** The person's earlier messages in the chat that share most words with the reply, as excerpts. */
async function nearest(turn, reply) {
  const q = reply.replace(/[^\p{L}\p{N}]+/gu, " ").trim().slice(0, 2000);
  if (!turn.session_id || !q) return [];
  const { results } = await api.get("/api/search", { q, session_id: turn.session_id, role: "user", limit: 10 });
  const earlier = results.filter((hit) => hit.highlights.length && hit.message_id < turn.user_message_id);
  return earlier.slice(0, NEAREST).map((hit) => {
    const message = { ...hit, id: hit.message_id, content: shortened(hit.content, QUOTED) };
    return { ...hit, title: text("chat.why.to_message"), messages: [message], hits: [message.id] };
  });
}

function ThisChat({ memory, near, jump }) {
  const { head_version: version } = memory.summary;
  const { messages, dropped } = memory.tail;
  const held = [
    messages && text("chat.why.read_messages", { count: messages }),
    version && text("chat.why.read_summary", { version }),
  ].filter(Boolean);
  const what = held.length > 1 ? text("chat.why.read_both", { messages: held[0], summary: held[1] }) : held[0];
  return html`<div>
      <h2>${text("chat.why.this_chat")}</h2>
      <p>${what ? text("chat.why.read", { what }) : text("chat.why.read_nothing")}</p>
      ${dropped > 0 && html`<p>${text("chat.why.dropped", { count: dropped })}</p>`}
      ${near.length > 0 && html`<p>${text("chat.why.nearest")}</p>`}
      <${Passages} excerpts=${near} jump=${jump} />
    </div>`;
}

/** What is known of the person beyond this chat, each as the prompt showed it: profile, overview, instructions, facts, examples. */
function AboutYou({ memory: { profile, overview, instructions = [], facts, examples = [] }, jump }) {
  const values = profile?.values ?? [];
  const parts = [
    ["profile", values.map(({ name, value }) => `${titleOf([name])}: ${value}`)],
    ["overview", overview?.sentences.map(({ text: words }) => words) ?? []],
    ["instructions", instructions.map(({ text: words }) => words)],
    ["facts", facts.map((fact) => html`<${Fact} ...${fact} jump=${jump} />`)],
    ["examples", examples.map(({ input }) => shortened(input, QUOTED))],
  ].filter(([, lines]) => lines.length);
  return parts.map(
    ([name, lines]) => html`<details open=${lines.length <= FEW}>
        <summary>${text(`chat.why.${name}`, { count: lines.length })}</summary>
        <ul class="lines">${lines.map((line) => html`<li class="typed">${line}</li>`)}</ul>
      </details>`,
  );
}

function Fact({ text: words, session_id: session, source_message_id: source, pinned, score, jump }) {
  const leads = { class: "link", title: text("chat.why.to_source"), onClick: () => jump(session, source) };
  const { total, ...parts } = score ?? {};
  return html`
    ${source ? html`<button ...${leads}>${words}</button>` : words}
    ${pinned && html` <span class="badge">${text("chat.why.pinned")}</span>`}
    <${Reasons} parts=${parts} />`;
}

const WRITES = ["remember", "correct", "forget"];
const LOOKED = ["reference", "implicit", "plain", "time", "always", "missing"]; // kinds of messages for which Recap searches

function FurtherBack({ memory: { excerpts, recall }, turn, marks, jump }) {
  const { kind, calls: made = [] } = recall;
  const calls = made.filter(({ name }) => !WRITES.includes(name)); // what those did is told under the reply
  const reason = kind ? text(`chat.why.reasons.${kind}`) : recall.reason; // turns of before have no kind
  const count = excerpts.length;
  const none = LOOKED.includes(kind) ? "chat.why.nothing_fits" : "chat.why.nothing_recalled";
  return html`<div>
      <h2>${text("chat.why.further_back")}</h2>
      <p>${text(count ? "chat.why.recalled" : none, { reason, count })}</p>
      ${calls.length > 0 && html`<ul>${calls.map((call) => html`<li class="muted">${looked(call)}</li>`)}</ul>`}
      <${Passages} excerpts=${excerpts} turn=${turn} marks=${marks} jump=${jump} />
    </div>`;
}

/** What was shown of a space or, in one, of the person's own memory.  Only who asked sees it, and only now. */
function Elsewhere({ space, facts, excerpts, jump }) {
  const go = (session, message) => {
    enter(space ?? "");
    jump(session, message);
  };
  return html`<div>
      <h2>${space === null ? text("chat.spaces.from_own") : text("chat.spaces.from", { space })}</h2>
      <ul class="lines">${facts.map((fact) => html`<li class="typed"><${Fact} ...${fact} jump=${go} /></li>`)}</ul>
      <${Passages} excerpts=${excerpts} jump=${go} />
    </div>`;
}

function looked({ query, after, before, error, excerpts }) {
  const asked = [
    query && text("chat.why.query", { words: query }),
    after && text("chat.why.from", { day: date(after) }),
    before && text("chat.why.to", { day: date(before) }),
  ].filter(Boolean).join(" ");
  return text("chat.why.looked_back", { asked, found: error ?? text("chat.why.passages", { count: excerpts }) });
}

/** Those of a stored `turn` can be marked as not helpful. */
const Passages = ({ excerpts, turn, marks, jump }) => html`<ul hidden=${!excerpts.length}>
    ${excerpts.map((excerpt) => {
      const mark = marks?.find(({ messages }) => messages.some(({ id }) => excerpt.hits.includes(id)));
      return html`<li>
          <${Passage} ...${excerpt} jump=${jump}>
            ${turn?.message_id && excerpt.hits.length > 0 && html`<${Judged} turn=${turn} hits=${excerpt.hits} mark=${mark} />`}
          <//>
        </li>`;
    })}
  </ul>`;

/** Whether an excerpt helped with the question: it is marked as not helpful, and that is taken back. */
class Judged extends Component {
  state = { mark: this.props.mark };

  mark = () =>
    this.attempt(async () => {
      const { turn: { session_id, message_id }, hits } = this.props;
      this.setState({ mark: await api.post(UNHELPFUL, { session_id, message_id, hits }) });
    });

  undo = () =>
    this.attempt(async () => {
      await api.del(`${UNHELPFUL}/${this.state.mark.id}`).catch(api.unlessGone);
      this.setState({ mark: null });
    });

  render(_, { mark, busy, trouble }) {
    return html`<div class="row wrap">
        <span class="muted small" role="status">${mark && text("chat.why.marked")}</span>
        <button class="link small" disabled=${busy} onClick=${mark ? this.undo : this.mark}>${text(mark ? "chat.why.undo" : "chat.why.unhelpful")}</button>
      </div>
      <${Trouble} ...${trouble} />`;
  }
}

function Passage({ session_id: session, document: file, title, messages, hits, score, why, summary, jump, children }) {
  const first = messages.find(({ id }) => hits.includes(id)) ?? messages[0];
  return html`<div class="excerpt">
      <div class="row">
        <button class="link" title=${text("chat.why.to_words")} onClick=${() => (file ? emit("longterm", "documents") : jump(session, first?.id))}>${title || text("chat.why.a_chat")}</button>
        <span class="muted small">${when(first?.created_at ?? summary.updated_at)}</span>
      </div>
      <blockquote>
        ${summary && html`<div class="typed">${summary.text}</div>`}
        ${messages.map(
          (message) => html`
            <div><span class="muted">${speaker(message)}: </span>${hits.includes(message.id) ? html`<mark>${message.content}</mark>` : message.content}</div>`,
        )}
      </blockquote>
      <${Reasons} parts=${{ score, ...why }} of=${first?.created_at} />
      ${children}
    </div>`;
}

/** Why something was taken, in words: its two strongest reasons.  The figures, by their names in the API, are folded. */
function Reasons({ parts, of }) {
  const figures = Object.entries(parts).filter(([, value]) => Math.abs(value) > 0.005);
  const known = figures.filter(([name, value]) => value > 0 && hasText(`chat.why.because.${name}`));
  const strongest = known.sort(([, one], [, other]) => other - one).slice(0, 2);
  const words = strongest.map(([name]) => text(`chat.why.because.${name}`, { day: of ? when(of) : "" }));
  if (parts.unhelpful < 0) words.push(text("chat.why.parts.unhelpful"));
  const named = (name) => (hasText(`chat.why.parts.${name}`) ? text(`chat.why.parts.${name}`) : name);
  return html`<details class="parts" hidden=${!figures.length}>
      <summary>${words.join(", ") || text("chat.why.details")}</summary>
      ${figures.map(([name, value]) => html`<span>${named(name)} ${value.toFixed(2)}</span>`)}
    </details>`;
}

function Tokens({ usage }) {
  const { prompt_tokens: sent, full_history_tokens: full, saved_tokens: saved, completion_tokens: reply } = usage;
  const share = (100 * saved) / Math.max(1, full);
  const said = saved > 0 ? text("chat.why.saved", { tokens: saved, share }) : text("chat.why.unsaved");
  const bar = (kind, value) => html`<span>${text(`chat.why.${kind}`)}</span>
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-${kind}" width=${(100 * value) / Math.max(sent, full, 1)} height="10" rx="1" />
    </svg>
    <span>${number(value)}</span>`;
  return html`<details>
      <summary>${text(usage.estimated ? "chat.why.tokens_estimated" : "chat.why.tokens", { tokens: sent })}</summary>
      <div class="tokens">${bar("sent", sent)}${bar("full", full)}</div>
      <p class="muted">${said} ${text("chat.why.reply_took", { tokens: reply })}</p>
    </details>`;
}
