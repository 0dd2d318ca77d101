// What the page does with elements besides drawing them.

export const byId = (id) => document.getElementById(id);

/** Announce `text` to screen readers. */
export function announce(text) {
  byId("announcer").textContent = text;
}

/** Have the person choose files of these kinds. */
export const chooseFiles = (accept) =>
  new Promise((resolve) => {
    const input = Object.assign(document.createElement("input"), { type: "file", multiple: true, accept });
    input.addEventListener("change", () => resolve([...input.files]));
    input.click();
  });

/** Have the browser save a file. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // the browser may read the blob later
}

/** Whether a key press is Enter.  Enter that ends the composition of a word by an input method is not. */
export const isEnter = ({ key, shiftKey, isComposing, keyCode }) => key === "Enter" && !shiftKey && !isComposing && keyCode !== 229;

/** Phones have no Shift+Enter, so there Enter begins a new line; and a keyboard that covers the page. */
export const PHONE = !matchMedia("(pointer: fine)").matches;
