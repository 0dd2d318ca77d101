"""Recall: finding again what was said before.

triggers decides from a message whether to look back, and times to when; recall searches, excerpts makes what it found
into windows within a token budget, and indexing feeds the search index.
"""
