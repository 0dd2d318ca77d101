"""The tables of `memory.languages` that grounding reads.

What counts as said is generous, in all languages; what is asked of a fact is a word that can't mean anything else.
"""

from memory.languages import pattern, table

NUMBER_WORDS: dict[str, int] = table(lambda language: {**language.numbers, **language.cardinals})
MULTIPLIERS: dict[str, int] = table(lambda language: language.multipliers)
CARDINALS: dict[str, int] = table(lambda language: language.cardinals)
ONE = pattern(lambda language: language.one)
DATE = pattern(lambda language: language.dates)
RELATIVE_TIME = pattern(lambda language: language.relative_times)
NEGATION = pattern(lambda language: language.negations)
# What a negation in a fact may rest on.
NEGATIVE = pattern(lambda language: "|".join(filter(None, (language.negations, language.negatives))))


def counted(word: str) -> bool:
    """Whether a word of a fact states a number that must have been said."""
    return word in CARDINALS
