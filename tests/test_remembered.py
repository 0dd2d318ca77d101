"""Caches of what people wrote."""

from __future__ import annotations

from search_index.remembered import forget_texts, remembered


def test_a_function_is_asked_once_for_each_text_until_texts_are_forgotten() -> None:
    asked: list[str] = []
    length = remembered(2)(lambda text: asked.append(text) or len(text))
    assert [length("one"), length("one"), length("three")] == [3, 3, 5]
    assert asked == ["one", "three"]
    forget_texts()
    assert length("one") == 3
    assert asked == ["one", "three", "one"]


def test_of_texts_that_may_be_long_only_short_ones_are_kept() -> None:
    asked: list[tuple[str, int]] = []

    @remembered(2, longest=4)
    def times(text: str, number: int) -> str:
        """Many."""
        asked.append((text, number))
        return text * number

    assert [times("four", 2), times("four", 2), times("four", 3)] == ["fourfour", "fourfour", "fourfourfour"]
    assert [times("fifth", 2), times("fifth", 2)] == ["fifthfifth", "fifthfifth"]
    assert asked == [("four", 2), ("four", 3), ("fifth", 2), ("fifth", 2)]
    assert (times.__name__, times.__doc__) == ("times", "Many.")
    forget_texts()
    times("four", 2)
    assert asked[-1] == ("four", 2)
