// The page's texts.  The server chooses the language and embeds its catalogue (web/texts) in the page.

const LANGUAGE = document.documentElement.lang;
const CATALOGUE = JSON.parse(document.getElementById("texts").textContent);

/** The language for Intl, with the region that the browser prefers: "en-GB" writes dates differently from "en-US". */
export const LOCALE = navigator.languages.find((locale) => locale.split("-")[0] === LANGUAGE) ?? LANGUAGE;

const plurals = new Intl.PluralRules(LOCALE);
const figures = new Intl.NumberFormat(LOCALE);

export const number = (value) => figures.format(Math.round(value));

const find = (key) => key.split(".").reduce((entry, name) => entry?.[name], CATALOGUE);

/** Whether there is a text of this key, for keys that come from the API, such as the codes of errors. */
export const hasText = (key) => find(key) !== undefined;

/**
 * The text of a key such as "page.send", with each `{name}` replaced by `values.name`; numbers are formatted.  A text
 * with plural forms takes the one for `values.count`.  Throws if the key or a value is missing.
 */
export const text = (key, values) => textParts(key, values).join("");

/** The same as a list of children for `el`, so that values can be elements. */
export function textParts(key, values = {}) {
  const entry = find(key);
  const words = entry?.other ? entry[plurals.select(values.count)] : entry;
  if (typeof words !== "string") throw new Error(`The catalogue has no text ${key}.`);
  return words.split(/\{(\w+)\}/).map((part, at) => {
    if (at % 2 === 0) return part;
    if (values[part] === undefined) throw new Error(`The text ${key} needs the value ${part}.`);
    return typeof values[part] === "number" ? number(values[part]) : values[part];
  });
}
