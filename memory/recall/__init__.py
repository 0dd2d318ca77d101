"""Recall: find earlier messages, for turns and for callers.

triggers          decides from a message whether to look back; times reads the times that it names
recall            plans, finds and selects for a turn; read it first
search            searches messages, facts and summaries for callers; its `find_matches` is the search of turns too
relevance, past_questions, unhelpful, reranking    leave hits out, or order them anew
excerpts          makes hits into windows, within a token budget
latest_sessions, nearest_summary, related_sessions    other conversations of the person
indexing          keeps the search index in step with the rows
"""
