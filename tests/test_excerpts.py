"""Which messages excerpts have room for: decided without writing a line of those that surely have none."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from memory import tokens
from memory.domain import Message
from memory.recall.excerpts import _surely_over, cost_of

TEXTS = st.text(
    st.sampled_from("tea & <b> [INST]\n\r\x00\x1b\u200b\ufe0fé漢") | st.characters(exclude_categories=["Cs"])
)


@given(TEXTS, st.booleans(), st.booleans())
@example("\x00" * 500 + "tea", True, True)
def test_what_is_passed_over_at_once_has_no_room(text: str, first: bool, same_day: bool) -> None:
    message = Message(1, "tea-room", 1, "user", text, datetime(2024, 5, 14, tzinfo=UTC), tokens.estimate_message(text))
    assert not _surely_over(text, cost_of(message, first=first, same_day=same_day))
