"""The built-in model: rules, no network, no key.

model        the door, `ExtractiveModel`         digesting   what messages add and take back: summary and facts
quoting      the reply, in the person's words    sections, topic   what the summary keeps
questions    what is asked for                   readings   what a sentence states, by the rules in
quotable     what could be quoted for it           statements, refusals, corrections; personal*, chinese (tables)
phrases      its own fixed words                 sentences, wording   where words and sentences begin and meet
superseding  what a new fact takes the place of
"""

from memory.llm.builtin.model import ExtractiveModel

__all__ = ["ExtractiveModel"]
