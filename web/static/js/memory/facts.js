// A list of facts: their text, importance and source, and actions to edit, forget and pin them.
//
//   const list = factList({ label: "Facts", onChanged, sessionTitle, before, leave });
//   somewhere.append(list.element);
//   list.draw(facts);            // can be repeated; keeps focus, open forms and open histories
//
// The list is one tab stop.  The arrow keys move, P pins, E edits, Delete forgets, and Tab leads to the buttons of the
// current fact.

import * as api from "../page/api.js";
import { jumpTo } from "../chat/conversation.js";
import { announce, button, el, svg } from "../page/dom.js";
import { CATEGORIES, factForm } from "./fact_form.js";
import { factHistory } from "./fact_history.js";
import { forgetFacts } from "./forget.js";
import { icon } from "../page/icons.js";
import { rowKeys } from "../page/rows.js";
import { shortened, when } from "../page/words.js";

let count = 0;

/** The facts in the order of prompts: pinned first, then by score. */
export function ranked(facts) {
  return [...facts].sort((a, b) => b.pinned - a.pinned || (b.score?.total ?? 0) - (a.score?.total ?? 0) || b.id - a.id);
}

/**
 * `onChanged()` is called after a change was stored, `onDrawn(facts)` with the facts on display in order.
 * `order(facts)` sorts them; the default is their rank.  `sessionTitle(id)` returns the title of a fact's chat, if it
 * is to be shown.  `before(fact)` returns a node to put before each fact, such as a check box.  `leave()` is called
 * before the page shows the source message of a fact.
 */
export function factList({
  label,
  onChanged = () => {},
  onDrawn = () => {},
  order = ranked,
  sessionTitle = null,
  before = null,
  leave = () => {},
}) {
  const hint = el("p.facts-hint", { id: `facts-hint-${++count}` }, "P pins, E edits, Delete forgets");
  const ul = el("ul.facts", { "aria-label": label });
  const element = el("div.facts-frame", {}, ul, hint);
  const items = new Map(); // by id: {fact, li, form, history}
  let facts = [];
  const settle = rowKeys(ul, () => [...ul.children], {
    keys: { p: by(pin), e: by(edit), Delete: by(forget), Backspace: by(forget) },
    open: (li) => Boolean(items.get(Number(li.dataset.fact))?.form),
  });
  const list = { element, draw, redraw, focus };

  function by(deed) {
    return (li) => deed(items.get(Number(li.dataset.fact)));
  }

  /** Show these facts. */
  function draw(next) {
    facts = next;
    redraw();
  }

  function redraw() {
    const focused = ul.contains(document.activeElement) ? document.activeElement : null;
    const id = Number(focused?.closest("li").dataset.fact);
    const at = [...ul.children].findIndex((li) => Number(li.dataset.fact) === id);
    const wanted = order(facts);
    const ids = new Set(wanted.map((fact) => fact.id));
    for (const [gone, item] of items) {
      if (ids.has(gone)) continue;
      if (item.form)
        item.li.remove(); // typed text is kept until the fact is shown again
      else (items.delete(gone), item.li.remove());
    }
    wanted.forEach((fact, place) => {
      const li = itemOf(fact).li;
      if (ul.children[place] !== li) ul.insertBefore(li, ul.children[place] ?? null);
    });
    if (focused) refocus(focused, id, at);
    settle();
    onDrawn(wanted);
  }

  /** The item of a fact.  It is created again if the fact has changed, but not while it is being edited. */
  function itemOf(fact) {
    const known = items.get(fact.id);
    if (known?.form || (known && JSON.stringify(known.fact) === JSON.stringify(fact))) {
      known.fact = fact;
      return known;
    }
    const item = known ?? { li: row(fact) };
    item.fact = fact;
    item.history = null; // the history has changed
    items.set(fact.id, item);
    fill(item);
    return item;
  }

  function refocus(focused, id, at) {
    if (document.activeElement === focused) return;
    const li = ul.querySelector(`li[data-fact="${id}"]`);
    const same = focused.isConnected ? focused : li?.querySelector(`[data-control="${focused.dataset.control}"]`);
    (same ?? li ?? ul.children[Math.min(at, ul.children.length - 1)])?.focus({ preventScroll: true });
  }

  function focus(id) {
    const li = element.isConnected && ul.querySelector(`li[data-fact="${id}"]`);
    if (!li) return false;
    li.focus();
    return true;
  }

  // -- one fact

  function row(fact) {
    const says = { "aria-describedby": hint.id, "aria-keyshortcuts": "P E Delete" };
    return el("li.fact", { tabIndex: -1, dataset: { fact: fact.id }, ...says });
  }

  function fill(item) {
    const { fact } = item;
    const control = (name, title, deed) =>
      button(icon(name), () => deed(item), {
        kind: `icon fact-${name}`,
        title,
        "aria-label": `${title}: ${shortened(fact.text)}`,
        dataset: { control: name },
      });
    const pinned = control("pin", "Pin", pin);
    pinned.setAttribute("aria-pressed", fact.pinned);
    item.trouble = el("p.trouble", { role: "alert", hidden: true });
    item.past = el("div.fact-past", {}, item.history);
    const since = button(`since ${when(fact.valid_from)}`, () => toggleHistory(item), {
      kind: "link",
      title: "How this fact changed",
      "aria-expanded": String(Boolean(item.history)),
      dataset: { control: "history" },
    });
    item.li.replaceChildren(
      ...[before?.(fact)].filter(Boolean),
      el(
        "div.fact-body",
        {},
        el("p.fact-text", {}, fact.text),
        source(fact),
        el(
          "div.fact-foot",
          {},
          dots(fact.importance),
          fact.category !== "other" && el("span", {}, CATEGORIES[fact.category] ?? fact.category),
          fact.scope === "user" && el("span", {}, "in all chats"),
          since,
        ),
        item.past,
        item.trouble,
      ),
      el("div.fact-actions", {}, control("edit", "Edit", edit), control("forget", "Forget", forget), pinned),
    );
    item.li.classList.toggle("pinned", fact.pinned);
  }

  function source(fact) {
    const title = sessionTitle && fact.session_id ? sessionTitle(fact.session_id) : null;
    return el("div.fact-source", {}, words(fact), title && el("span.fact-chat", {}, title));
  }

  /** The quote of a fact, with a link to its message.  Facts that the person added have none. */
  function words({ session_id: session, source_message_id: message, quote }) {
    if (message === null) return el("span", {}, quote ? `“${quote}”` : "stated by you");
    const show = () => {
      leave();
      jumpTo(session, message);
    };
    const about = {
      kind: "link quote",
      title: `Show the message it came from: ${quote}`,
      dataset: { control: "source" },
    };
    return button(quote ? `“${quote}”` : "Show its message", show, about);
  }

  async function pin(item) {
    const pinned = !item.fact.pinned;
    if (await change(item, { pinned })) {
      announce(pinned ? "Pinned" : "Unpinned");
      item.li.scrollIntoView({ block: "nearest" });
    }
  }

  async function change(item, changes) {
    complain(item, "");
    try {
      replace(await api.patch(`/api/facts/${item.fact.id}`, changes));
      return true;
    } catch (error) {
      complain(item, error.message);
      return false;
    }
  }

  function replace(fact) {
    facts = facts.map((one) => (one.id === fact.id ? fact : one));
    redraw();
    onChanged();
  }

  function edit(item) {
    if (item.form) return item.form.querySelector("textarea").focus();
    const done = () => {
      item.form = null;
      fill(item);
      redraw();
      item.li.focus();
    };
    item.form = factForm({
      fact: item.fact,
      action: "Save",
      cancel: done,
      save: async (changes) => {
        const fact = Object.keys(changes).length ? await api.patch(`/api/facts/${item.fact.id}`, changes) : item.fact;
        item.fact = fact;
        done();
        if (Object.keys(changes).length) replace(fact);
      },
    });
    item.li.replaceChildren(item.form);
    item.form.querySelector("textarea").focus();
  }

  async function forget(item) {
    complain(item, "");
    try {
      if (!(await forgetFacts([item.fact]))) return;
      facts = facts.filter((fact) => fact !== item.fact);
      redraw();
    } catch (error) {
      complain(item, error.message);
    }
  }

  async function toggleHistory(item) {
    complain(item, "");
    try {
      item.history = item.history ? null : await factHistory(item.fact);
    } catch (error) {
      complain(item, error.message);
    }
    item.past.replaceChildren(...[item.history].filter(Boolean));
    item.li.querySelector('[data-control="history"]').setAttribute("aria-expanded", Boolean(item.history));
  }

  function complain(item, text) {
    item.trouble.textContent = text;
    item.trouble.hidden = !text;
  }

  return list;
}

/** The importance of a fact, as one to five filled dots. */
function dots(importance) {
  const look = { viewBox: "0 0 36 8", width: 36, height: 8, class: "importance" };
  const dot = (n) => svg("circle", { cx: n * 7 - 3, cy: 4, r: 2.6, class: n <= importance ? "full" : "empty" });
  const name = { role: "img", "aria-label": `importance ${importance} of 5` };
  return svg("svg", { ...look, ...name }, ...[1, 2, 3, 4, 5].map(dot));
}
