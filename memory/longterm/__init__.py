"""Long-term memory: what goes with a person from one conversation to the next, each kind a document of the store.

profile         who the person is: read, edited, updated by the mini model, shown
profile_schema  the JSON Schemas of profiles
patch           what changes a profile, and what a change rests on
conversation_types  what a conversation is for, and what a turn does differently then
examples        good answers, shown where a similar message comes
instructions    named texts beside the system prompt, in versions, and proposals for them
feedback        what a person thinks of a reply, and what it changes
unhelpful       excerpts that did not help, and count less for similar questions
exchanges       what a person said and the reply to it, which they judge
shapes          what an import may bring of these
forgetting      what goes with messages that are erased or replaced
consolidation   facts brought together: repetitions, contradictions, past plans
links           what people, places and things have to do with each other
when            when a kind is written
"""
