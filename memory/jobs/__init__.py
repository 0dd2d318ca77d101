"""Work that happens after the reply.

outbox    asking for jobs, claiming and running them   asking    how a request merges with a job that exists
listing   what waits, what failed and why              reasons   why a job failed, as it is stored
"""
