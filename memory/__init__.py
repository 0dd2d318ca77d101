"""Engine: from a message to its reply, and to the memory that both leave.

Read `turn/turn.py` first, which runs a turn, then `knowledge/summary_job.py`, which updates the memory after it.

Each part imports only parts further down this list (import-linter holds it):

job_kinds   the handler of each kind of job
documents   files and texts that a person adds to what is known
erasing     erase sessions, people, facts and items; keep sessions only as long as a policy says
users, transfer, spaces    what is stored of a person, counted; export and import; memory that persons share
passages    the text of documents, cut into parts and stored
turn        one turn, from a message to its reply: begin, context, prompt, answer, record
transcripts    the lists of messages that programs send with each request
message_versions, hidden_messages    messages in the place of others, and messages that no prompt shows
recall      find earlier messages, decide whether to look for them, feed the search index
feedback    what a person thinks of a reply, and what it changes
examples    good answers to show
knowledge   facts, summaries and the profile; what goes with messages that are erased, replaced or forgotten
instructions, job_listing, webhooks    named texts beside the system prompt; the list of jobs; addresses told of events
engine      the parts below, built once for a process; what stands above are functions over it
sessions    threads of messages, and which of them a prompt shows word for word
conversation_types    what a conversation is for, and what a turn does differently then
store       JSON items under a namespace and a key
deliveries  events on their way to webhooks
jobs, job_statements    work that happens after the reply; its order
llm         models: the protocol, OpenAI-compatible servers, the built-in one
leases      who is taking a turn in a session, and who is doing a job
events      what happened, read from the rows it left
prompts, access    instructions by name; whose data it is, and how much of it
quoting, paging, ops    remembered text in a prompt; pages of a list; logs, figures, backups
errors, tokens, languages, json_values    what can go wrong; estimates; words and patterns; what others wrote as JSON

Nothing here knows HTTP, and rows stay inside.
"""
