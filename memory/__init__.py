"""The engine: from a message to its reply, and to the memory the two leave.

    pipeline   one turn, end to end           recall     finds what was said before
    context    composes the prompt            summary    the versioned summary and the job that updates it
    facts      ranked statements              digest     what the mini model answers, checked
    sessions   threads of messages            outbox     work that happens after the reply
    prompts    the instructions, by name      indexing   feeds the search index from the rows
    leases     who holds a session or a job   services   all of the above, wired for one process

Nothing here knows HTTP.  Rows stay inside; what comes out are the values of `domain`.
"""
