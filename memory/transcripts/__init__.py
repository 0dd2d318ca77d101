"""Transcripts: the lists of messages that programs send with each request.

transcript          reads a list: each message as it came, and as it is stored; read it first
matching            finds the session that a request continues, and stores its new messages
reconcile           compares the sent messages with the stored ones
persons_words       the person's words among what agents and frontends write around them
auxiliary_requests  requests that a program makes for itself, as for a title
"""
