"""Named, versioned prompts.  The texts beside this file are the defaults."""
