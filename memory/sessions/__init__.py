"""Sessions and their messages.

sessions   threads of messages, for callers and for the engine's own transactions
messages   a message from what was said to a row, and back
fold       when the summary takes the place of the messages that a prompt shows word for word
"""
