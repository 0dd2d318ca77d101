"""The built-in model: rules, no network, no key.

model        the door, `ExtractiveModel`         digesting   summary and facts from messages
quoting      the reply, in the person's words    sections, topic, corrections   what the summary keeps
questions    what is asked for                   statements, refusals, sentences   reading what was said
quotable     what could be quoted for it         personal*, chinese   first-person facts, as tables
"""

from memory.llm.extractive.model import ExtractiveModel

__all__ = ["ExtractiveModel"]
