"""Recall: finding again what was said before.

triggers decides from a message whether to look back, by its `keywords`, and `times` to when (`calendar`); recall
searches, and excerpts makes what it found into windows within a token budget.
"""
