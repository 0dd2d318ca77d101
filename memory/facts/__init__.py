"""Facts: ranked statements, each with its source.

facts        stored, read, changed, taken from what was said
ranking      which of them a prompt shows, and why
entities     the names of people, places and things that facts tie together
grounding    whether a proposed fact rests on what the person said
corrections  which facts correct which
duplicates   which facts say the same
"""
