"""Work that happens after the reply.

outbox    claiming jobs and running them        asking    how a request merges with a job that exists
listing   what waits, what failed and why
"""
