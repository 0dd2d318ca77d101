"""Named, versioned prompts; the texts beside this file are the defaults."""
