"""A turn, from a person's message to the reply, in the order of its steps.

pipeline    one turn, end to end               admission  its lease, the stored message, what came before
views       what the session remembers         preparing  what is recalled for it, and the prompt made of all
context     composes the prompt                fold       when its tail gives way to the summary
answering   the model's reply, with `tools`    report     what the turn says of its memory
stops       ending it from outside             taken      reading afterwards how it went
watch       its line in the log, its figures      leased     its session when it ends

`values` are what goes in and what comes out.
"""
