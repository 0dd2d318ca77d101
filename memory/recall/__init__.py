"""Recall: finding again what was said before.

triggers decides from a message whether to look back, and times to when; recall searches, derived reads what else can be
searched, reranking asks the mini model, excerpts makes what was found into windows within a token budget, and indexing
feeds the search index.
"""
