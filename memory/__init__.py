"""The engine: from a message to its reply, and to the memory the two leave.

A turn, in the order of its steps:
    pipeline    one turn, end to end               admission  its lease, the stored message, what is remembered
    triggers    whether it looks back (with keywords, small_talk), and times: to when
    recall      finds what was said before         excerpts   as windows within a token budget
    context     composes the prompt                fold       when its tail gives way to the summary
    answering   the model's reply, with tools      report     what the turn says of its memory

What it leaves:
    sessions    threads of messages                summary    the versioned summary and the job that updates it
    facts       ranked statements                  digest     what the mini model answers (digest_format: checked)
    outbox      work that happens after the reply  indexing   feeds the search index from the rows
    leases      who holds a session or a job       prompts    the instructions, by name (compare: side by side)

services wires all of it for one process; domain and turn hold the values that come out; quoting is the one place
that puts remembered text into a prompt.  Nothing here knows HTTP, and rows stay inside.
"""
