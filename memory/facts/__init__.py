"""Facts: ranked statements, each with its source.

facts        stored, read, changed, taken from what was said
ranking      which of them a prompt shows, and why
grounding    what of a proposal was really said     grounding_words   the tables of memory.languages it reads
corrections  lines of facts that took each other's place
"""
