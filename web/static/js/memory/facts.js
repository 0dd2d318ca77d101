// Facts as a list: what is remembered, how sure it stands, where it came from, and what can be done about it.
//
//   const list = factList({ label: "Facts", onChanged, sessionTitle, before, leave });
//   somewhere.append(list.element);
//   list.draw(facts);            // as often as one likes: focus, open forms and open histories stay
//
// One tab stop; the arrow keys move, P pins, E edits, Delete forgets; the buttons of the current fact follow by Tab.
// Guarantee: a fact that was forgotten is hidden at once in every list, and erased when the time to undo is over.

import * as api from "../page/api.js";
import { jumpTo } from "../chat/conversation.js";
import { announce, button, el, svg } from "../page/dom.js";
import { CATEGORIES, factForm } from "./fact_form.js";
import { factHistory } from "./fact_history.js";
import { icon } from "../page/icons.js";
import { rowKeys } from "../page/rows.js";
import { settings } from "../page/state.js";
import { offerUndo } from "../page/undo.js";
import { plural, shortened, when } from "../page/words.js";

const BATCH = 1000; // facts in one call to forget

const lists = new Set(); // those on the page: a fact that is forgotten in one leaves all
const leaving = new Set(); // ids of facts that were forgotten, and may still be taken back
let count = 0;

/** Pinned first, then by score: as prompts show them. */
export function ranked(facts) {
  return [...facts].sort((a, b) => b.pinned - a.pinned || (b.score?.total ?? 0) - (a.score?.total ?? 0) || b.id - a.id);
}

/** The facts without those that were just forgotten. */
export const remembered = (facts) => facts.filter((fact) => !leaving.has(fact.id));

/**
 * Forget facts: they are hidden in every list now, and erased when the time to undo is over; then `changed()` is
 * called.  `from`: an element of the dialog or panel it is done in.
 */
export function forgetFacts(facts, { changed = () => {}, from } = {}) {
  const user = settings.user; // whose they are, also when the deed is done after somebody else was chosen
  const ids = facts.map((fact) => fact.id);
  const redrawAll = () => {
    for (const list of lists) list.redraw();
  };
  const bringBack = () => {
    for (const id of ids) leaving.delete(id);
    redrawAll();
  };
  for (const id of ids) leaving.add(id);
  redrawAll();
  const what = ids.length === 1 ? `“${shortened(facts[0].text)}”` : plural(ids.length, "fact");
  announce(`Forgotten: ${what}. Press Control Z to undo.`);
  offerUndo(`Forgotten: ${what}`, {
    from,
    undo() {
      bringBack();
      announce("Remembered again");
      for (const list of lists) if (list.focus(ids[0])) break;
    },
    async settle({ leaving: keepalive = false }) {
      try {
        await erase(ids, user, keepalive);
      } catch (error) {
        bringBack();
        throw new Error(`${what} could not be forgotten. ${error.message}`);
      }
      for (const list of lists) list.drop(ids);
      for (const id of ids) leaving.delete(id); // a new fact may get the number of one that is gone
      changed();
    },
  });
}

async function erase(ids, user, keepalive) {
  if (ids.length === 1) {
    await api.del(`/api/facts/${ids[0]}`, { query: { user_id: user }, keepalive }).catch((error) => {
      if (error.status !== 404) throw error; // gone already: with its session, or from another page
    });
    return;
  }
  for (let at = 0; at < ids.length; at += BATCH) {
    await api.post("/api/facts/forget", { user_id: user, ids: ids.slice(at, at + BATCH) }, { keepalive });
  }
}

/**
 * `onChanged()`: a fact was changed or erased, and that is stored.  `onDrawn(facts)`: these are shown now, in this
 * order.  `order(facts)`: how they are shown; by default as they are ranked.  `sessionTitle(id)`: the title of the chat
 * a fact is from, where that is to be shown.  `before(fact)`: a node to stand before each, as a check box.  `leave()`:
 * called before the page shows the message a fact came from.
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
  const list = { element, draw, redraw, drop, focus };

  function by(deed) {
    return (li) => deed(items.get(Number(li.dataset.fact)));
  }

  /** Show these facts. */
  function draw(next) {
    facts = next;
    lists.add(list);
    redraw();
  }

  function drop(ids) {
    facts = facts.filter((fact) => !ids.includes(fact.id));
    for (const id of ids) {
      items.get(id)?.li.remove();
      items.delete(id);
    }
  }

  function redraw() {
    if (!element.isConnected) lists.delete(list);
    const focused = ul.contains(document.activeElement) ? document.activeElement : null;
    const id = Number(focused?.closest("li").dataset.fact);
    const at = [...ul.children].findIndex((li) => Number(li.dataset.fact) === id);
    const wanted = order(remembered(facts));
    const ids = new Set(wanted.map((fact) => fact.id));
    for (const [gone, item] of items) {
      if (ids.has(gone)) continue;
      if (item.form)
        item.li.remove(); // what was typed waits for the fact to be shown again
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

  /** The item of a fact, made anew when the fact differs; not while it is being edited. */
  function itemOf(fact) {
    const known = items.get(fact.id);
    if (known?.form || (known && JSON.stringify(known.fact) === JSON.stringify(fact))) {
      known.fact = fact;
      return known;
    }
    const item = known ?? { li: row(fact) };
    item.fact = fact;
    item.history = null; // it has a line more by now
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

  /** The words it rests on, leading to their message; facts that the person stated have none. */
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

  function forget(item) {
    forgetFacts([item.fact], { changed: onChanged, from: element });
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

/** How important a fact is, as filled dots of five. */
function dots(importance) {
  const look = { viewBox: "0 0 36 8", width: 36, height: 8, class: "importance" };
  const dot = (n) => svg("circle", { cx: n * 7 - 3, cy: 4, r: 2.6, class: n <= importance ? "full" : "empty" });
  const name = { role: "img", "aria-label": `importance ${importance} of 5` };
  return svg("svg", { ...look, ...name }, ...[1, 2, 3, 4, 5].map(dot));
}
