"""Estimates of tokens, and texts cut to them."""

from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import estimate, fit_budget, truncate

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


@given(st.lists(st.text(max_size=40), max_size=8), st.integers(0, 60))
def test_texts_fit_a_budget_up_to_the_first_that_does_not_which_takes_nothing_of_it(texts, budget):
    kept, left = fit_budget(budget, texts)
    assert kept == texts[: len(kept)] and left == budget - sum(map(estimate, kept)) >= 0
    assert len(kept) == len(texts) or estimate(texts[len(kept)]) > left
