// Blocks of code: each with its language, a button that copies it, and colours.

import { copyButton, el } from "./dom.js";
import { fragmentOf } from "./safe_html.js";

const LONGEST = 20_000; // characters; to colour more would hold up the page

/** A block of code in a language, as the text names it; `colour` colours it. */
export function codeBlock(code, language = "") {
  return el("div.code", {},
    el("div.code-head", {}, el("span", {}, language), copyButton(code)),
    el("pre", { tabIndex: 0 }, el("code", { dataset: { language } }, code))); // focusable, to scroll by keyboard
}

/** Colour the blocks of code in `element`.  This loads highlight.js, with its common languages, when there is one. */
export async function colour(element) {
  const blocks = [...element.querySelectorAll("code[data-language]:not([data-language=''])")];
  if (!blocks.length) return;
  const { default: highlighter } = await import("../../vendor/highlight.mjs").catch(() => ({}));
  if (!highlighter) return; // the server can't be reached, and code stays as it is
  for (const block of blocks) {
    const { language } = block.dataset;
    if (!highlighter.getLanguage(language) || block.textContent.length > LONGEST) continue;
    const { value } = highlighter.highlight(block.textContent, { language, ignoreIllegals: true });
    block.replaceChildren(fragmentOf(value));
  }
}
