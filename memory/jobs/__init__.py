"""Work that happens after the reply.

outbox    asking for a job, and doing it     looking   which job is next
listing   what waits, what failed and why    reasons   why a job failed, as it is kept
"""
