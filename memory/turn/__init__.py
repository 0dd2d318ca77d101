"""A turn, from a person's message to the reply.

pipeline   one turn from end to end              admission  its lease, the stored message
prompt     what is remembered, recalled, sent    tools      how a model looks back by itself
running    turns that run: stops, log, metrics   turns      turns as rows
report     what a turn says of its memory        values     what goes in and what comes out
"""
