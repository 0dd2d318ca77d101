// Blocks of code: each with its language, a button that copies it, and colours.
import { announce } from "./dom.js";
import { Component, elementOf, html } from "./html.js";
import { fragmentOf } from "./safe_html.js";
import { text } from "./words.js";

const LONGEST = 20_000; // characters; to colour more would hold up the page

/** A block of code in a language, as the text names it; `colour` colours it. */
export const codeBlock = (code, language = "") =>
  elementOf(html`<div class="code">
      <div class="code-head"><span>${language}</span><${Copy} words=${code} /></div>
      <pre tabindex="0"><code data-language=${language}>${code}</code></pre>
    </div>
  `); // `pre` can be focused, to scroll it by keyboard

/** Copy a text, and resolve to what to say of it. */
export async function copyText(words) {
  const done = await navigator.clipboard.writeText(words).then(() => text("page.copied"), () => text("page.copy_blocked"));
  announce(done);
  return done;
}

/** A button that copies `words`. */
class Copy extends Component {
  copy = async () => {
    this.setState({ label: await copyText(this.props.words) });
    setTimeout(() => this.setState({ label: null }), 1500);
  };

  render(_, { label }) {
    return html`<button class="quiet" onClick=${this.copy}>${label ?? text("page.copy")}</button>`;
  }
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
