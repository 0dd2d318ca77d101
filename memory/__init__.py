"""The engine: from a message to its reply, and to the memory the two leave.

turn        one turn, from a message to its reply: admission, recall, prompt, answer, record
recall      finding again what was said before, and whether to look
summary     the versioned summary: written, checked, tried, compared
facts       ranked statements, each with its source
clients     conversations as clients of the OpenAI protocol send them
people      all of a person: read, taken along, brought in
erasing     a message, facts, a session, a person, and all that came of them
jobs        work that happens after the reply
leases      who is taking a turn in a session, who is doing a job, and which of them are dead
access      keys, serving without them, and the tokens a day
operating   logs, figures, backups, and a database that fails
llm         models: the protocol, OpenAI-compatible servers, the built-in one

sessions    threads of messages                messages   from what was said to a row and back
branches    messages in the place of others    indexing   feeds the search index from the rows
prompts     the instructions, by name          quoting    puts remembered text into a prompt; nothing else does

services wires all of it for one process; domain holds the values that are passed between these.  Nothing here knows
HTTP, and rows stay inside.
"""
