"""Sessions and their messages.

sessions   threads of messages, for callers and for the engine's own transactions
messages   a message from what was said to a row, and back
head       which part of a session the prompt's summary stands for, and which its tail shows word for word
"""
