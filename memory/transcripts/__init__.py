"""Transcripts: the lists of messages that programs send with each request."""
