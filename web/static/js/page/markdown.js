// Renders Markdown as elements.  Raw HTML in the text stays text, and images become links.
import footnotes from "../../vendor/markdown-it-footnote.mjs";
import MarkdownIt from "../../vendor/markdown-it.mjs";
import { codeBlock } from "./code.js";
import { elementOf, html } from "./html.js";
import { fragmentOf } from "./safe_html.js";
import { text as said } from "./words.js";

const markdown = new /** @type {any} */ (MarkdownIt)("default", { html: false, linkify: true, breaks: true }).use(footnotes);
markdown.disable("footnote_inline"); // ^[a-z] is more often a regular expression
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false }); // do not turn "file.py" into a link

const { rules } = markdown.renderer;

// A number or a sign alone on its line, as the reply "4711.", is text and no empty list.
markdown.block.ruler.before("list", "alone", (state, line, _, silent) => {
  const content = state.getLines(line, line + 1, state.blkIndent, false).trim();
  if (silent || !/^(?:\d{1,9}[.)]|[-+*])$/.test(content) || state.sCount[line + 1] > state.sCount[line]) return false;
  state.push("paragraph_open", "p", 1);
  Object.assign(state.push("inline", "", 0), { content, children: [] });
  state.push("paragraph_close", "p", -1);
  state.line = line + 1;
  return true;
});

// Formulas: $$...$$ and \[...\] on lines of their own, $...$ and \(...\) within one.  A price is none: "$5 to $9".
const FORMULA = /\$\$([^$]+?)\$\$|\\\[([^]+?)\\\]|\$(?=\S)([^$\n]*?[^\s\\$])\$(?!\d)|\\\((.+?)\\\)/y;

markdown.inline.ruler.before("escape", "math", (state, silent) => {
  FORMULA.lastIndex = state.pos;
  const found = FORMULA.exec(state.src);
  if (!found) return false;
  const [whole, ...parts] = found;
  if (!silent) Object.assign(state.push("math", "", 0), { content: parts.find(Boolean), info: parts[0] || parts[1] ? "block" : "inline" });
  state.pos += whole.length;
  return true;
});

rules.math = (tokens, at) => `<code class="math-${tokens[at].info}">${markdown.utils.escapeHtml(tokens[at].content)}</code>`;

/** Typeset the formulas in `element` as MathML.  This loads KaTeX when there is one. */
export async function typeset(element) {
  const formulas = [...element.querySelectorAll("[class^=math-]")];
  if (!formulas.length) return;
  await import("../../vendor/katex.mjs").catch(() => null); // which sets a global name; without it formulas stay as they are
  for (const formula of formulas) {
    const displayMode = formula.className === "math-block";
    const place = elementOf(html`<span class=${formula.className} />`);
    globalThis.katex?.render(formula.textContent, place, { displayMode, output: "mathml", throwOnError: false, strict: "ignore", maxSize: 40 });
    if (place.firstChild) formula.replaceWith(place);
  }
}

// Images become links: fetching an image would tell its server that the message was read.
rules.image = (tokens, index) => {
  const { escapeHtml } = markdown.utils;
  const token = tokens[index];
  return `<a href="${escapeHtml(token.attrGet("src") ?? "")}">${escapeHtml(token.content || said("page.image"))}</a>`;
};

// The page's policy allows no style attributes, so a column is aligned by a class.
rules.th_open = rules.td_open = (tokens, index, options, env, renderer) => {
  const token = tokens[index];
  token.attrs = token.attrs?.map(([, style]) => ["class", style.replace("text-align:", "align-")]) ?? null;
  return renderer.renderToken(tokens, index, options);
};

/** Render `text` as a document fragment. */
export function render(text) {
  const fragment = fragmentOf(markdown.render(text));
  for (const block of fragment.children) block.dir = "auto"; // a block in Arabic or Hebrew runs from right to left
  for (const link of fragment.querySelectorAll("a[href]")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  const outer = []; // the ranks of the headings around one; they come below the page's, and no level is left out
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const rank = heading.localName[1];
    while (outer.at(-1) >= rank) outer.pop();
    outer.push(rank);
    heading.setAttribute("role", "heading");
    heading.setAttribute("aria-level", outer.length + 1);
  }
  for (const table of fragment.querySelectorAll("table")) table.tabIndex = 0; // a wide one is scrolled by keyboard
  for (const code of fragment.querySelectorAll("pre > code")) {
    const language = code.className.replace("language-", "");
    code.parentElement.replaceWith(codeBlock(code.textContent.replace(/\n$/, ""), language));
  }
  for (const item of fragment.querySelectorAll("li")) tick(item);
  linkFootnotes(fragment);
  return fragment;
}

/** The words of a Markdown text as they are read out: without those of buttons. */
export function spoken(text) {
  const fragment = render(text);
  for (const one of fragment.querySelectorAll("button")) one.remove();
  return fragment.textContent;
}

/** Make an item that begins with [ ] or [x] one of a task list. */
function tick(item) {
  const words = (item.querySelector(":scope > p") ?? item).firstChild;
  const [mark] = /^\s*\[[ xX]\]\s/.exec(words?.nodeType === Node.TEXT_NODE ? words.data : "") ?? [];
  if (!mark) return;
  const checked = !mark.includes("[ ]");
  words.data = words.data.slice(mark.length);
  const label = said(checked ? "page.task_done" : "page.task_open");
  words.before(elementOf(html`<input type="checkbox" disabled checked=${checked} aria-label=${label} />`));
  item.className = "task";
}

/** Lead from each number to its footnote and back.  No ids or addresses: those are the page's own. */
function linkFootnotes(fragment) {
  const notes = [...fragment.querySelectorAll("li.footnote-item")];
  for (const place of fragment.querySelectorAll("sup.footnote-ref")) {
    const number = parseInt(place.textContent.slice(1), 10); // [2], or [2:1] where it is named again
    const note = notes[number - 1];
    if (!note) continue;
    const link = (sign, to, label) => elementOf(html`<button class="link" aria-label=${label} onClick=${() => to.focus()}>${sign}</button>`);
    const there = link(number, note, said("page.footnote", { number }));
    place.replaceChildren(there);
    note.tabIndex = -1;
    const back = note.querySelector("a.footnote-backref");
    back?.replaceWith(link("↩", there, said("page.footnote_back", { number })));
  }
}
