// Keeps in memory what a browser would store that blocks its storage: until the page is loaded again.
for (const name of ["localStorage", "sessionStorage"]) {
  try {
    window[name].length;
  } catch {
    const kept = new Map();
    const [setItem, removeItem, clear] = ["set", "delete", "clear"].map((act) => (...values) => kept[act](...values));
    Object.defineProperty(window, name, { value: { getItem: (key) => kept.get(key) ?? null, setItem, removeItem, clear } });
  }
}

// Applies the theme chosen in Settings before the first paint.  Without a choice, the system's theme applies.
const theme = localStorage.getItem("recap.theme");
if (theme) document.documentElement.dataset.theme = theme;
