"""Facts, summaries and the profile: what Recap knows of a person, and how it changes.

summary_job           after a reply: read messages, store a summary, facts and instructions; read it first
summary_update        one call of the mini model for it, and how its answer is read
summary_preview       the same for a prompt that is tried, with nothing stored
grounding, denials    checks that a proposed fact rests on the person's words, which do not deny it
supersession          finds the facts that a new one ends, and those that hold in place of others
facts                 facts for callers; fact_reads, fact_writes and fact_ranking read, write and choose them
consolidation         merges facts that say the same, and ends those that a newer one contradicts, in a job
entities, graph       names in the relations of facts; relations as a graph
summaries, backlog    versions of a session's summary; sessions without one
profile, overview     one document of lasting values, patched by profile_patch; a few sentences on what matters now
learned_instructions  what a person asks of every later reply
rule_set, rules       what is kept: the rules in force; rules for callers
forgetting            what goes with messages that are erased, refused or asked to be forgotten
"""
