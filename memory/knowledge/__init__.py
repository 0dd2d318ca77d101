"""Facts, summaries and the profile: what Recap knows of a person, and how it changes."""
