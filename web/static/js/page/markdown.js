// Markdown as safe HTML.  Guarantee: what comes out holds no script, no style, no frame, no form and loads nothing:
// raw HTML in the text stays text, images become links, and DOMPurify passes only the elements named here.

import DOMPurify from "../../vendor/dompurify.mjs";
import MarkdownIt from "../../vendor/markdown-it.mjs";

const markdown = new MarkdownIt("default", { html: false, linkify: true, breaks: true });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false }); // "file.py" is no address

// An image would be fetched from wherever the text says: shown as a link, it tells nobody that it was read.
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

/** A fragment to put into the page. */
export function render(text) {
  const fragment = DOMPurify.sanitize(markdown.render(text), ALLOWED);
  for (const link of fragment.querySelectorAll("a[href]")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    heading.setAttribute("role", "heading"); // below the page's own headings, whatever the text chose
    heading.setAttribute("aria-level", "4");
  }
  for (const scroller of fragment.querySelectorAll("pre, table")) scroller.tabIndex = 0; // wide ones scroll by keyboard too
  return fragment;
}
