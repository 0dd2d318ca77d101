"""Recall: find earlier messages, for turns and for callers.

triggers          decides from a message whether to look back; times reads the times that it names
recall            plans, finds and selects for a turn; read it first
search            searches messages, facts and summaries for callers; its `find_matches` is the search of turns too
relevance         leaves out hits that are not near enough; unhelpful and reranking order them anew
excerpts          makes hits into windows, within a token budget
other_sessions    shows other conversations by their summaries; related_sessions lists them for callers
indexing          keeps the search index in step with the rows
"""
