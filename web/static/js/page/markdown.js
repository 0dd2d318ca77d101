// Renders Markdown as safe HTML.  Guarantee: the result contains no script, style, frame or form, and loads nothing.
// Raw HTML in the text stays text, images become links, and DOMPurify passes only the elements named here.

import "../../vendor/dompurify.mjs"; // defines the global DOMPurify
import MarkdownIt from "../../vendor/markdown-it.mjs";

const markdown = new MarkdownIt("default", { html: false, linkify: true, breaks: true });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false }); // do not turn "file.py" into a link

// Images become links: fetching an image would tell its server that the message was read.
markdown.renderer.rules.image = (tokens, index) => {
  const { escapeHtml } = markdown.utils;
  const token = tokens[index];
  return `<a href="${escapeHtml(token.attrGet("src") ?? "")}">${escapeHtml(token.content || "image")}</a>`;
};

const ALLOWED = {
  ALLOWED_TAGS: [
    "p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** Render `text` as a document fragment. */
export function render(text) {
  const fragment = DOMPurify.sanitize(markdown.render(text), ALLOWED);
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
  for (const scroller of fragment.querySelectorAll("pre, table")) scroller.tabIndex = 0; // so that wide ones can be scrolled by keyboard
  return fragment;
}
