"""Token estimates without a tokenizer.

UTF-8 bytes / 4 plus a small margin is a little more than tokenizers count for English, and close for Chinese.  The
estimates keep budgets; reports of what was spent come from the provider's own `usage`.
"""

from collections.abc import Iterable

MESSAGE_OVERHEAD = 4  # tokens a chat format spends around each message
_ELLIPSIS = "…"


def estimate(text: str) -> int:
    """Tokens of `text`, never much below the truth; 0 for no text."""
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (length + 3) // 4 + 1 if text else 0


def estimate_message(content: str) -> int:
    """Tokens of `content` as one chat message."""
    return estimate(content) + MESSAGE_OVERHEAD


def fit_budget(budget: int, texts: Iterable[str]) -> tuple[list[str], int]:
    """Return the texts before the first that does not fit into `budget` tokens, and what they leave of the budget."""
    kept: list[str] = []
    for text in texts:
        if (size := estimate(text)) > budget:
            break
        budget -= size
        kept.append(text)
    return kept, budget


def truncate(text: str, budget: int, start: int = 0) -> str:
    """`text` from `start` on, cut at the end of a word to at most `budget` tokens; each cut has an ellipsis."""
    text = f"{_ELLIPSIS}{text[start:]}" if start else text
    if estimate(text) <= budget:
        return text
    most = 4 * (budget - 1) - len(_ELLIPSIS.encode())  # bytes, as `estimate` counts them
    if most <= 0:
        return ""
    written = text.encode("utf-8", "surrogatepass")
    while 0x80 <= written[most] < 0xC0:  # inside a character
        most -= 1
    cut = written[:most].decode("utf-8", "surrogatepass")
    space = cut.rfind(" ", max(0, len(cut) - 40))
    return (cut[:space] if space > 0 else cut).rstrip() + _ELLIPSIS if cut else ""
