"""Sessions and their messages.

sessions           threads of messages, for callers and for the engine's own transactions
messages           a message from a draft to a row, and back
compaction         when the summary takes the place of the messages that a prompt shows word for word, and is updated
refused_messages   messages that a model server refused
memory_requests    messages that ask not to be remembered, or to forget or remember something
"""
