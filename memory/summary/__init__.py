"""The summary: what stands in for the messages that are no longer sent.

summaries keeps the versions and the job that updates them; material gathers what the mini model is given, digest asks
it, digest_format checks what it answers, and corrected takes out what no longer
holds.  preview tries a prompt on a conversation, compare several on a benchmark.
"""
