"""Turn, from a person's message to the reply.

turn      one turn from end to end              begin     its session, the stored message
context   what the session remembers            prompt    the messages to send; memory blocks
answer    the reply of the model                record    what is stored of it
tools     how a model searches by itself        turns     turns as rows
explanation  what a turn showed of the memory, as it is stored
request   the values: what goes in, is reported, and comes out
"""
