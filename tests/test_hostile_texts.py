"""Long texts of one piece over and over: what reads people's words takes time in proportion to them, not to its square.

(What models answer for a summary is in test_summary_update.)
"""

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from memory.knowledge.grounding import Grounding, Ungrounded
from memory.knowledge.learned_instructions import asks_for_lasting
from memory.languages import ASKS, analysis_in, content_terms
from memory.llm import TextDelta, text_of
from memory.llm.text_calls import TextCalls
from memory.llm.thoughts import ThoughtSplitter, without_thoughts
from memory.quoting import attribute, own_words, without_blocks
from memory.recall.times import time_ranges
from memory.recall.triggers import MessageReading, each_keyword
from memory.transcripts.auxiliary_requests import is_auxiliary_text
from memory.transcripts.persons_words import split_speaker, without_agents, words_of_person
from memory.transcripts.reconcile import MessageKey
from memory.transfer.sources import chatgpt, claude
from memory.transfer.sources.times import Times
from models.facts import FactDraft
from models.messages import Message
from models.sections import Sections
from tests.application import soon_over
from tests.builtin import digest, reply

ENGLISH = analysis_in("en")
NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)


def index(piece: str) -> None:
    ENGLISH.terms("é" + piece * (300_000 // len(piece)), is_indexed=True)


def look_for_times(piece: str) -> None:
    time_ranges(piece * (100_000 // len(piece)), NOW, UTC)


def look_back(piece: str) -> None:
    text = (piece * 100_000)[:100_000] + "x"
    for message, visible in ((text, [text] * 3), (text[:250] + "x", [text[:500]])):
        MessageReading(message, NOW, UTC, ENGLISH).trigger(visible)
    list(each_keyword(text, ENGLISH))


def ground(piece: str) -> None:
    said = "I live in Bergen, o" + piece * 50_000
    Grounding([Message(1, "s", 1, "user", said, NOW, 1)]).check(FactDraft("Lives in Bergen", 1, "I live in Bergen"))


def ground_denials(piece: str) -> None:
    draft = FactDraft("The user likes walnuts", 0, "not walnuts")
    with suppress(Ungrounded):
        Grounding([Message.of_person("not walnuts. " + piece * (100_000 // len(piece)), NOW)]).check(draft)


def look_for_requests(piece: str) -> None:
    asks_for_lasting(Message.of_person(piece * (100_000 // len(piece)) + "x", NOW))
    ASKS.search("é" + piece * (20_000 // len(piece)))


def compare_words(piece: str) -> None:
    content_terms(piece * (100_000 // len(piece)))


def answer(piece: str) -> None:
    text = piece * (50_000 // len(piece))
    noted = digest([text]) != (Sections(), [])
    reply(text, [text] if noted else [])


def read_request(piece: str) -> None:
    text = f"user: a assistant: {piece * (100_000 // len(piece))}"
    is_auxiliary_text(text)
    words_of_person(text)
    words_of_person(f"<user_query>{text.removeprefix('user: a assistant: ')}")
    split_speaker(text)
    assert MessageKey("assistant", text).words


def read_agents(piece: str) -> None:
    aider = {"role": "user", "content": "I switched to a new code base. Please don't consider the above files"}
    without_agents([aider, {"role": "user", "content": piece * (100_000 // len(piece)) + "x"}], -1)
    words_of_person(piece * (4_000_000 // len(piece)))


def read_export(piece: str) -> None:
    text = f"a{piece * (200_000 // len(piece))}b"
    authors = {"author": {"role": "assistant"}, "metadata": {}}
    custom = {"content_type": "user_editable_context", "user_profile": text}
    nodes = {"1": {"message": {**authors, "content": {"content_type": "text", "parts": [text]}}}}
    nodes["2"] = {"parent": "1", "message": {**authors, "content": custom}}
    assert list(chatgpt.records({"mapping": nodes}, Times(NOW)))
    said = {"sender": "assistant", "content": [{"type": "text", "text": text}]}
    assert list(claude.records({"chat_messages": [said]}, Times(NOW)))


def quote(piece: str) -> None:
    attribute(f"[x{piece * (200_000 // len(piece))}]")
    assert len(without_blocks(piece * (200_000 // len(piece)) + "</chat>")) > 7


def take_thoughts_out(piece: str) -> None:
    without_thoughts("</think>" + piece * (100_000 // len(piece)))


def leave_out_quotations(piece: str) -> None:
    own_words(f"From: a\nTo: b\n{piece * (100_000 // len(piece))}x\ny")


def stream_thought(piece: str) -> None:
    splitter = ThoughtSplitter(implicit=True)
    for _ in range(100_000 // len(piece)):
        assert not list(splitter.feed(piece))
    assert text_of(splitter.feed("</think>\nSo be it.")) == "So be it."


def look_for_calls(piece: str) -> None:
    calls = TextCalls({"remember"})
    list(calls.without_calls([TextDelta("<tool_call>remember " + piece * (100_000 // len(piece)))]))
    assert calls.end()[1]


PIECES = {  # of each reader
    index: "word |a.|aB|1,|漢|'s|C++|\u0301\u0316|\x00|İ|x\u0301-",
    look_for_times: "in may |on monday | |2023-|12/|1|三|一月|the first half of ",
    look_back: "a|a |good morning |不是|啊|谢谢你|ha|the |i |we have already |what |\u0301|(|'|:)|之前|the bug |that i "
    "|hi, |😀|Ab |a/|a.|_|1,|数据库的|~/|a-|::|http://|カ|x1 |12ab",
    read_request: "user: | |<think>|<details type=\"reasoning\"|title |chat |summar|[{'role': |a\n|Question:|"
    "Question: a\n|<a_b>|\n\n|Answer |Observation:",
    ground: "\u0315\u0300",
    ground_denials: "not walnuts |not |kein ",
    look_for_requests: ".|, |─|never |you always |please ",
    compare_words: "한|ว|中，",
    read_agents: "\n|<skill></skill>",
    read_export: ' |\ue200|<details type="reasoning"|a',
    quote: "[INST]|]~b]|[|[a|<x>|ب\u200c|👩\u200d|❤\ufe0f|.\U000e0100|\u0301\u0316|<memory>\n",
    take_thoughts_out: "x\n| \n|é\n|</think>x\n",
    leave_out_quotations: "\n| \n|x\n\n|From: a\nb: c\n|> a\n|```\n|``` ",
    stream_thought: "word|</th|\n",
    look_for_calls: "<parameter=a>x |<arg_key>a</arg_key><arg_value>|{remember |a=|a| |parameter |<parameter=",
    answer: 'I |and I | |.|X is out because |我，|it must not |"| - |```\n|I need 5 apples\n|My name is A'
    "|I live in Ab Cd |in on at not |1 to 2 ",
}


@pytest.mark.parametrize("read", PIECES)
def test_a_long_text_of_one_piece_is_read_in_seconds(read):
    for piece in PIECES[read].split("|"):
        with soon_over():
            read(piece)
