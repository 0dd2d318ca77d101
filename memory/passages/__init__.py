"""Read documents as text, cut them into passages, and store these."""
