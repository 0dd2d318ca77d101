"""The engine: from a message to its reply, and to the memory the two leave.

Each part imports only parts further down this list (import-linter holds it):

services    the engine wired once for a process
people      all of a person: read, exported, imported, erased
turn        one turn, from a message to its reply: admission, recall, prompt, answer, record
clients     conversations as clients of the OpenAI protocol send them
branches    messages in the place of others
recall      finding again what was said before, whether to look, and feeding the search index
longterm    what goes with a person from one conversation to the next: the profile
summary     the versioned summary: written, checked, tried, compared
facts       ranked statements, each with its source
sessions    threads of messages, and which of them a prompt shows word for word
store       JSON items under a namespace and a key
jobs        work that happens after the reply
leases      who is taking a turn in a session, and who is doing a job
llm         models: the protocol, OpenAI-compatible servers, the built-in one
prompts, access, ops      instructions by name; whose data it is, and how much of it; logs, figures, backups
rendering, paging         remembered text in a prompt; pages of a list
languages                 words and patterns, one file a language
sections, tokens, domain, errors    a summary's parts; estimates; the values that pass between all; what can go wrong

Nothing here knows HTTP, and rows stay inside.
"""
