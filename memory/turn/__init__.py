"""Turn, from a person's message to the reply.

pipeline   one turn from end to end              admission  its lease, the stored message
head       what the session remembers            prompt     what is recalled, and what is sent
running    the answer; a turn's lease, log and metrics
tools      how a model looks back by itself      turns      turns as rows
block      what other models are shown
values     what goes in, is reported, and comes out
"""
