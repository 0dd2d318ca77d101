"""Recall: finding again what was said before.

triggers decides from a message whether to look back (`keywords`, `small_talk`), and `times` to when; recall searches,
and excerpts makes what it found into windows within a token budget.
"""
