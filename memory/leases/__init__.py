"""Who is taking a turn in a session, and who is doing a job.

leases    taking, renewing and giving back     holders   whether a holder is dead
"""
