// Signing in: the page asks for an API key if the server requires one.
//
// Guarantee: the key is stored only in sessionStorage (by api.js) and deleted with the tab or by Sign out.  It never
// appears in a URL, in the settings or in the text of the page.

import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { byId, el } from "../page/dom.js";
import { text, textParts } from "../page/texts.js";

export function startSignIn() {
  const out = byId("sign-out");
  out.hidden = !api.signedIn();
  out.addEventListener("click", () => {
    api.signOut();
    location.reload(); // removes all data that the key gave access to
  });
  api.onKeyNeeded(async (refused) => {
    let key;
    while (!key) key = await ask(refused); // a browser may close any dialog, and nothing can be shown without a key
    out.hidden = false;
    return key;
  });
}

function ask(refused) {
  return openDialog(
    text("dialogs.sign_in.title"),
    (close) => {
      const problem = el("p.notice.error", { id: "key-problem", role: "alert", hidden: true });
      const field = el("input", {
        type: "password",
        autocomplete: "off",
        spellcheck: false,
        required: true,
        maxLength: 1000,
        "aria-describedby": "key-problem",
      });
      const say = (words) => {
        problem.textContent = words;
        problem.hidden = false;
        field.setAttribute("aria-invalid", "true");
      };
      const form = el(
        "form.stack",
        {
          noValidate: true,
          onsubmit: (event) => {
            event.preventDefault();
            const key = field.value.trim();
            if (!key) say(text("dialogs.sign_in.missing"));
            else if (!sendable(key)) say(text("dialogs.sign_in.unsendable"));
            else close(key);
          },
        },
        el(
          "p",
          {},
          textParts("dialogs.sign_in.explanation", {
            command: el("code", {}, "flask keys create"),
            setting: el("code", {}, "RECAP_API_KEYS"),
          }),
        ),
        problem,
        el("label.field", {}, text("dialogs.sign_in.key"), field),
        el("p.muted.small", {}, text("dialogs.sign_in.key_stays")),
        el("div.row.end", {}, el("button.primary", { type: "submit" }, text("dialogs.sign_in.title"))),
      );
      if (refused) say(text("dialogs.sign_in.refused"));
      return form;
    },
    { locked: true },
  );
}

/** Whether the key is valid in a header.  For an invalid one, fetch() throws an error that does not help people. */
const sendable = (key) => /^[\x21-\x7e]+$/.test(key);
