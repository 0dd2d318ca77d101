"""Languages as data: each is one TOML file beside this module, named by its ISO code.

Code asks for a pattern or a table and gets that of all languages together, since people mix them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory.languages.language import Language, Times, load, tables
from search_index import analysis
from search_index.analysis import Analysis

LANGUAGES: tuple[Language, ...] = tuple(map(load, sorted(Path(__file__).parent.glob("*.toml"))))

__all__ = ["LANGUAGES", "Language", "Times", "analysis_in", "pattern", "table", "tables", "vocabulary"]


def pattern(part: Callable[[Language], str]) -> re.Pattern[str]:
    """Return one pattern for that part of all languages, with case ignored."""
    sources = [(language, part(language)) for language in LANGUAGES]
    either = "|".join(
        rf"(?<!\w)(?:{source})(?!\w)" if language.spaced else f"(?:{source})" for language, source in sources if source
    )
    return re.compile(either, re.IGNORECASE)


def table(part: Callable[[Language], Any]) -> dict[str, Any]:
    """Return that table of all languages in one."""
    return {word: value for language in LANGUAGES for word, value in part(language).items()}


def vocabulary(part: Callable[[Language], frozenset[str]]) -> frozenset[str]:
    """Return those words of all languages."""
    return frozenset().union(*map(part, LANGUAGES))


def analysis_in(code: str) -> Analysis:
    """Return the analysis of the search index for a language of SEARCH_LANGUAGE, with the stop words known here."""
    return analysis.analysis_for(code, next((one.stop_words for one in LANGUAGES if one.code == code), None))
