// Applies the theme chosen in Settings before the first paint.  Without a choice, the system's theme applies.
const theme = localStorage.getItem("recap.theme");
if (theme) document.documentElement.dataset.theme = theme;
