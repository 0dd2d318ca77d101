"""What is said wherever the built-in model answers, so that nobody takes it for more than it is."""

from __future__ import annotations

from config import Settings

BUILTIN = (
    "Recap's built-in model answers: it quotes what was said and writes no text of its own. "
    "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, to get real replies."
)


def builtin_notice(settings: Settings) -> str | None:
    """The notice, or None when a real model answers."""
    return BUILTIN if settings.uses_builtin_model else None
