// Before the first paint: the look chosen in Settings.  Absent: the system's.
try {
  const theme = localStorage.getItem("recap.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage is forbidden: the system's look
}
