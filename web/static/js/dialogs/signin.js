// Signing in: where the server has API keys, the page asks for one.
//
// Guarantee: the key is kept in sessionStorage alone, by api.js; it is gone with the tab or with Sign out, and it
// never stands in an address, a setting or the page's own text.

import * as api from "../page/api.js";
import { openDialog } from "../page/dialog.js";
import { byId, el } from "../page/dom.js";

export function startSignIn() {
  const out = byId("sign-out");
  out.hidden = !api.signedIn();
  out.addEventListener("click", () => {
    api.signOut();
    location.reload(); // nothing of what the key let in stays on the page
  });
  api.onKeyNeeded(async (refused) => {
    let key;
    while (!key) key = await ask(refused); // a browser may close any dialog; without a key there is nothing to show
    out.hidden = false;
    return key;
  });
}

function ask(refused) {
  return openDialog(
    "Sign in",
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
      const say = (text) => {
        problem.textContent = text;
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
            if (!key) say("Type or paste the key first.");
            else if (!sendable(key))
              say("This can't be a key: it holds characters that no key has. Copy it once more.");
            else close(key);
          },
        },
        el(
          "p",
          {},
          "This server asks for an API key. Ask whoever runs it for yours: they make one with ",
          el("code", {}, "flask keys create"),
          ", or it stands in the setting ",
          el("code", {}, "RECAP_API_KEYS"),
          ".",
        ),
        problem,
        el("label.field", {}, "API key", field),
        el("p.muted.small", {}, "It is kept until this tab is closed or you sign out, and nowhere else."),
        el("div.row.end", {}, el("button.primary", { type: "submit" }, "Sign in")),
      );
      if (refused)
        say("The server did not take that key. Check that all of it was copied; it may also have been replaced.");
      return form;
    },
    { locked: true },
  );
}

/** Whether the key can stand in a header: fetch() throws for what can't, with words that help nobody. */
const sendable = (key) => /^[\x21-\x7e]+$/.test(key);
