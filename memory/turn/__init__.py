"""Turn: from a person's message to the reply.

turn            runs one turn from end to end; read it first
request         the values: the request, the turn that has begun, the events that a caller gets
begin           takes the session and stores the message
context         reads what the prompt may show: its beginning (prefix), other owners' memory (other_memories)
prompt          builds the messages to send; memory_report says which memory they show
answer          calls the model; client_answer joins several calls into one answer of a client
tools           let the model search by itself, and write facts (fact_tools)
record          stores how the turn ended, in the table of turns (turns)
log_and_metrics counts the turn and logs it
memory_block    what a prompt would show, for an application that calls a model itself
"""
