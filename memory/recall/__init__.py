"""Recall: finding again what was said before.

triggers decides from a message whether to look back, and times to when; recall finds and selects for a turn, search for
callers; relevance, past_questions and unhelpful leave hits out, and reranking asks the mini model; excerpts makes hits
into windows within a token budget; latest_sessions, nearest_summary and related_sessions tell of other conversations;
indexing feeds the search index.
"""
