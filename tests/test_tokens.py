"""Estimates of tokens, and texts cut to them."""

from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import estimate, truncate

words = st.text(st.characters(exclude_categories=["Cc", "Zs", "Zl", "Zp"]), max_size=60)  # without spaces


@given(st.text(max_size=60), st.integers(-1, 60))
def test_a_clipped_text_keeps_to_its_budget(text, budget):
    clipped = truncate(text, budget)
    if estimate(text) <= budget:
        assert clipped == text
    elif clipped:
        assert estimate(clipped) <= budget
        assert clipped.endswith("…") and text.startswith(clipped[:-1])


@given(words, st.integers(2, 60))
def test_as_much_of_a_text_is_kept_as_fits(text, budget):
    clipped = truncate(text, budget)
    if clipped != text:
        kept = max(0, len(clipped) - 1)
        assert estimate(text[: kept + 1] + "…") > budget


def test_a_text_is_cut_at_a_words_end():
    for text, budget, clipped in [
        ("one two three four", 4, "one two…"),
        ("日本語の話", 4, "日本語…"),
        ("日本語の話", 2, ""),
        ("", 0, ""),
    ]:
        assert truncate(text, budget) == clipped
