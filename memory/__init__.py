"""The engine: from a message to its reply, and to the memory the two leave.

turn        one turn, from a message to its reply: admission, recall, prompt, answer, record
recall      finding again what was said before, and whether to look
summary     the versioned summary: written, checked, tried, compared
clients     conversations as clients of the OpenAI protocol send them
people      all of a person: read, taken along, brought in, erased
llm         models: the protocol, OpenAI-compatible servers, the built-in one

sessions    threads of messages                messages   from what was said to a row and back
branches    messages in the place of others    facts      ranked statements, each with its source
outbox      work that happens after the reply  indexing   feeds the search index from the rows
leases      who holds a session or a job       prompts    the instructions, by name

services wires all of it for one process; domain holds the values that are passed between these; quoting is the one
place that puts remembered text into a prompt.  Nothing here knows HTTP, and rows stay inside.
"""
