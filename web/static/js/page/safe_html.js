// Turns HTML into elements.  Guarantee: they contain no script, style, frame, form or id, and load nothing.
//
// DOMPurify passes only what is named here, and is the only policy that Trusted Types allow on this page.
import "../../vendor/dompurify.mjs"; // its minified file sets a global name

const { DOMPurify } = globalThis;

const ALLOWED = {
  ALLOWED_TAGS: [
    "p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "sup", "section", "span",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "start", "class"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};
// The classes of Markdown and of highlight.js, whose sub-classes end in underscores: no text can look like the page.
const CLASSES = /^(?:language-[\w+#.-]+|footnote[\w-]*|math-(?:block|inline)|align-\w+|hljs-[\w-]+(?: \w+_)*)$/;

DOMPurify.addHook("uponSanitizeAttribute", (_, attribute) => {
  if (attribute.attrName === "class") attribute.keepAttr = CLASSES.test(attribute.attrValue);
});

/** `html` as a document fragment. */
export const fragmentOf = (html) => DOMPurify.sanitize(html, ALLOWED);
