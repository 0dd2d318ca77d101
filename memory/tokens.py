"""Token estimates with no tokenizer and no download.

max(characters, UTF-8 bytes) / 4 plus a small margin: on English it lies a little above what tokenizers count, and
on Chinese, where characters / 4 is a third of the truth, bytes / 4 keeps it close.  Used to keep budgets; what
was really spent is reported from the provider's own `usage`.
"""

from __future__ import annotations

MESSAGE_OVERHEAD = 4  # tokens a chat format spends around each message
_ELLIPSIS = "…"


def estimate(text: str) -> int:
    """Tokens of `text`, a whole number, never below the truth by much; 0 for no text."""
    if not text:
        return 0
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (length + 3) // 4 + 1


def estimate_message(content: str) -> int:
    """Tokens of `content` as one chat message."""
    return estimate(content) + MESSAGE_OVERHEAD


def clip(text: str, budget: int) -> str:
    """`text`, cut at a word's end and marked with an ellipsis so that `estimate` of it is at most `budget`."""
    if estimate(text) <= budget:
        return text
    most = 4 * (budget - 1) - len(_ELLIPSIS.encode())  # bytes, as `estimate` counts them
    if most <= 0:
        return ""
    written = text.encode("utf-8", "surrogatepass")
    while 0x80 <= written[most] < 0xC0:  # within a character
        most -= 1
    cut = written[:most].decode("utf-8", "surrogatepass")
    space = cut.rfind(" ", max(0, len(cut) - 40))
    return (cut[:space] if space > 0 else cut).rstrip() + _ELLIPSIS if cut else ""
