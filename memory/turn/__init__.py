"""Turn, from a person's message to the reply.

turn      one turn from end to end              request   the values: what goes in, the begun turn, what comes out
begin     the stored message                    take_session  the lease of its session
prefix    what stands at the head of the prompt
context   what else the prompt may show         other_memories  memory of other owners that the turn reads
prompt    the messages to send                  memory_report   what was shown of the memory, as it is stored
answer    the reply of the model                tools     how a model searches, and writes, by itself
record    what is stored of its end             turns     turns as rows
log_and_metrics   what operators get of it      memory_block    a prompt's memory, for another model
"""
