// Applies the theme chosen in Settings before the first paint.  Without a choice, the system's theme applies.
try {
  const theme = localStorage.getItem("recap.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // the browser forbids storage: use the system's theme
}
