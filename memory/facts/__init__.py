"""Facts: ranked statements, each with its source.

facts        stored, read, changed, ranked for a prompt
grounding    what of a proposal was really said     grounding_words   the words that takes, by language
corrections  lines of facts that took each other's place
"""
