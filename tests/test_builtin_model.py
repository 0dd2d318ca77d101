"""The built-in model's replies: quoted, dated, the person's own words first, and honest when there is nothing.

Whatever is said, it answers, in little time, and quotes only what it was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import tokens
from memory.domain import FACT_CATEGORIES, Excerpt, Message
from memory.llm import ChatMessage, DigestMaterial, Finish, ModelRequest, Piece, ReplyMaterial, complete
from memory.llm.builtin.digest import MAX_ITEM, MAX_ITEMS
from memory.sections import Excluded, Sections
from tests.builtin_calls import ADA, MODEL, START, digest, fact, message, quotations, reply, texts
from tests.hostile import soon_over

ANSWERS = [
    ("Where do I live?", 'You told me on 20 November 2026: "I live in Tallinn."'),
    ("Do you remember where I live?", 'You told me on 20 November 2026: "I live in Tallinn."'),
    ("Which city do I live in?", 'You told me on 20 November 2026: "I live in Tallinn."'),
    ("What's my name?", 'You told me on 20 November 2026: "My name is Ada"'),
    ("who am i", 'You told me on 20 November 2026: "My name is Ada"'),
    ("What am I allergic to?", 'You told me on 20 November 2026: "I\'m allergic to peanuts."'),
    ("Do I have any allergies?", 'You told me on 20 November 2026: "I\'m allergic to peanuts."'),
    ("What do I do for a living?", 'You told me on 21 November 2026: "I work as a nurse."'),
    ("What is my dog called?", 'You told me on 21 November 2026: "I have a dog named Rex."'),
    ("Remind me of my pet's name", 'You told me on 21 November 2026: "I have a dog named Rex."'),
]


@pytest.mark.parametrize(("question", "answer"), ANSWERS)
def test_answers_with_what_the_person_said_and_when(question: str, answer: str) -> None:
    assert reply(question, ADA) == answer
    assert reply(question, [*ADA, question]) == answer


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("I moved to Lyon", "Where do I live?"),
        ("Our budget is 700 euros", "What did we discuss about the budget?"),
        ("The flat costs 900 euros a month", "How much does the flat cost?"),
        ("My birthday is on 3 May", "When is my birthday?"),
        ("I was born on 3 May 1990", "When is my birthday?"),
        ("I'm based in Rome", "Where do I live?"),
        ("My favourite colour is green", "What is my favorite colour?"),
        ("the wifi password is hunter2", "what's the wifi password"),
        ("I parked the car on level 3", "Where did I park?"),
        ("The Kubernetes migration failed on the staging cluster", "What happened with the Kubernetes migration?"),
        ("Meine Schwester wohnt in Berlin", "Wer wohnt in Berlin?"),
        ("我住在上海", "我住在哪里？"),
        ("我对花生过敏", "我对什么过敏？"),
        ("项目的数据库用的是邮差系统", "数据库用的是什么？"),
    ],
)
def test_finds_it_though_the_words_differ(told: str, question: str) -> None:
    assert told in reply(question, ["I like tea.", told, "The weather was nice today."])


def test_the_most_recent_of_contradicting_statements_is_quoted_alone() -> None:
    answer = reply("Where do I live?", ["I live in Tallinn", "I like tea", "No, I moved to Lyon"])
    assert "I moved to Lyon" in answer and "Tallinn" not in answer
    known = [fact(2, "Moved to Lyon", "I moved to Lyon", day=5)]
    answer = reply("Where do I live?", ["I live in Tallinn"], known)
    assert quotations(answer) == ["I moved to Lyon"]


def test_several_statements_are_listed_at_most_three() -> None:
    answer = reply("What do I like?", ["I like tea.", "I love jazz.", "I enjoy rowing.", "I adore figs."])
    assert answer.startswith("You told me:\n- on ") and len(quotations(answer)) == 3


def test_says_plainly_that_it_has_nothing() -> None:
    answer = reply("What's the capital of Peru?", ADA)
    assert "I find nothing about that" in answer and "built-in model" in answer and not quotations(answer)
    assert "not told me anything yet" in reply("What's the capital of Peru?")


def test_other_peoples_attributes_are_not_the_persons() -> None:
    tail = ["I live in Tallinn.", "My sister Mia lives in Oslo."]
    assert quotations(reply("Where does Mia live?", tail)) == ["My sister Mia lives in Oslo."]
    assert quotations(reply("Where does Bob live?", tail)) == []


def test_questions_and_its_own_replies_are_never_quoted() -> None:
    tail: list[str | Message] = [
        "Is the budget 500 euros?",
        message(2, 'You told me on 20 November 2026: "The budget is 400 euros"', "assistant"),
        "What about the budget for the party?",
    ]
    assert quotations(reply("What is the budget?", tail)) == []


def test_the_persons_own_words_come_before_the_assistants() -> None:
    assistant = message(2, "The budget for the party could be 900 euros.", "assistant")
    assert "900" not in reply("What about the party budget?", ["The party budget is 500 euros.", assistant])
    assert quotations(reply("What about the party budget?", [message(1, "Hello"), assistant])) == []


def test_imported_people_are_quoted_by_name() -> None:
    window = Excerpt("old", "", (message(1, "I adopted a cat called Fig.", "assistant", "Mia"),), (1,), 1.0)
    answer = reply("What did Mia adopt?", excerpts=[window])
    assert answer == 'Mia said on 20 November 2026: "I adopted a cat called Fig."'


def test_excerpts_answer_a_question_that_is_only_about_a_time() -> None:
    window = Excerpt("old", "", (message(1, "I finished the fence."), message(2, "Nice!", "assistant")), (1,), 1.0)
    assert quotations(reply("What did I tell you yesterday?", excerpts=[window])) == ["I finished the fence."]


def test_the_summary_answers_where_no_quotation_does() -> None:
    summary = Sections(topic="Garden", data=("The fence is 12 m long",), excluded=(Excluded("plastic", "ugly"),))
    assert "The fence is 12 m long" in reply("How long is the fence?", summary=summary)
    for question in ("What have we talked about?", "Summarize our conversation", "What do you know about me?"):
        overview = reply(question, summary=summary)
        assert "Topic: Garden" in overview and "plastic" in overview
    assert reply("What have I ruled out?", summary=summary).endswith("Ruled out:\n- plastic (because ugly)")


def test_acknowledges_what_it_noted() -> None:
    assert reply(ADA[0]) == "Noted: name Ada; lives in Tallinn; allergic to peanuts."
    assert reply("The sky looks odd this evening") == "Noted. I keep it word for word; ask me about it any time."
    assert reply("No PHP, please.") == "Noted: ruled out PHP."
    assert reply("I don't want to fly, it's too stressful.") == "Noted: ruled out flying."


TALKS: list[tuple[list[str], str, str]] = [
    (["I am allergic to peanuts."], "what can't I eat?", "I am allergic to peanuts."),
    (["I am allergic to peanuts."], "can I eat peanuts?", "I am allergic to peanuts."),
    (["I'm vegan and I like tea"], "can I eat cheese?", "I'm vegan"),
    (["The budget is 800 euros.", "Not 800, make it 1,000 euros."], "What is the budget?", "make it 1,000 euros"),
    (
        ["Let's use Redis for the queue.", "Let's use Kafka instead"],
        "what do we use for the queue?",
        "use Kafka instead",
    ),
    (["My manager is Sofia", "My manager is Raj"], "who is my manager?", "My manager is Raj"),
    (["My girlfriend Ana likes figs", "I'm Tom"], "what is my girlfriend's name?", "My girlfriend Ana likes figs"),
    (
        ["The cutover is on Saturday 12 July", "not Saturday, Sunday"],
        "when is the cutover?",
        "Cutover: Sunday 12 July",
    ),
    (["I'm allergic to 海鲜, 别推荐"], "我不能吃什么？", "I'm allergic to 海鲜"),
    (["我住在上海，在一家startup做backend"], "where do I work?", "在一家startup做backend"),
    (["我的预算是5000元", "不是5000，是8000元"], "现在预算是多少？", "预算：8000元"),
]


@pytest.mark.parametrize(("said", "question", "answer"), TALKS)
def test_what_was_just_said_is_answered_before_any_summary_has_it(said: list[str], question: str, answer: str) -> None:
    found = reply(question, said)
    assert answer in found and "\n" not in found


UNKNOWN = [
    "What's the weather like in Lisbon in June?",
    "How old is my sister?",
    "Is Lisbon safe?",
    "Any good restaurants in Lisbon?",
    "How much is the hotel?",
    "Should I use Kubernetes?",
    "Who won the world cup in 2018?",
    "What is my brother's name?",
    "里斯本的天气怎么样？",
]


@pytest.mark.parametrize("question", UNKNOWN)
def test_says_so_rather_than_quote_what_is_beside_the_point(question: str) -> None:
    said = [
        "We fly to Lisbon on 3 June.",
        "My sister Mia likes figs.",
        "Let's use Redis for the queue.",
        "我要去里斯本",
    ]
    assert quotations(reply(question, said)) == []


def test_lists_what_holds_when_asked_what_it_knows() -> None:
    said = ["My name is Ada, I live in Tallinn and I am allergic to peanuts.", "We moved: I live in Lyon now."]
    said += ["I don't want to fly, it's too stressful.", "What's the capital of France?", "Thanks, that's great!"]
    assert reply("What do you know about me?", said) == (
        "From what you have told me:\n- Name: Ada\n- Allergic to peanuts\n- Lives in Lyon\n"
        "Ruled out:\n- flying (because it's too stressful)"
    )
    stale = [fact(1, "Lives in Tallinn", "I live in Tallinn"), fact(2, "Lives in Lyon", "I live in Lyon", day=1)]
    assert "Tallinn" not in reply("What do you know about me?", facts=stale)
    assert reply("What did I rule out?", said).endswith("Ruled out:\n- flying (because it's too stressful)")
    assert "find nothing" in reply("What did I rule out?", [*said, "Flying is fine after all"])
    assert "Requirements:\n- Use Redis for the queue" in reply("What did we decide?", ["Let's use Redis for the queue"])
    assert "- 坐飞机" in reply("你记得我什么？", ["我叫小明", "我不想坐飞机，太贵了"])


def test_says_what_a_correction_replaces() -> None:
    answer = reply("No, I moved to Lyon", facts=[fact(1, "Lives in Tallinn", "I live in Tallinn")])
    assert answer == ('Noted: moved to Lyon.\nThis replaces what you told me on 20 November 2026: "I live in Tallinn"')
    assert reply("Not Ada, Ida", facts=[fact(1, "Name: Ada", "My name is Ada")]).startswith("Noted: name Ida.")


def test_a_statement_and_a_question_in_one_message() -> None:
    answer = reply("I have a cat called Fig. Where do I live?", ADA)
    assert answer.startswith("Noted: has a cat called Fig.\n\nYou told me on") and "I live in Tallinn" in answer
    assert reply("I work as a cook. What do I do for a living?") == "Noted: works as a cook."


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("hi", "Hello!"),
        ("hello again", "Hello!"),
        ("good morning", "Hello!"),
        ("Thanks, that's great!", "You're welcome."),
        ("ok cool", "All right."),
        ("lol", "All right."),
        ("nice one", "All right."),
        ("see you tomorrow", "Goodbye."),
        ("help", "I am Recap's built-in model."),
        ("forget my name", "I am Recap's built-in model"),
        ("Can you explain monads?", "I am Recap's built-in model"),
        ("太好了，谢谢", "不客气"),
        ("明天见", "再见"),
        ("Thanks a lot!", "You're welcome."),
        ("bye", "Goodbye."),
        ("ok", "All right."),
        ("who are you?", "I am Recap's built-in model."),
        ("Write me a poem about cats", "I am Recap's built-in model"),
        ("Translate into French: I live in Rome.", "I am Recap's built-in model"),
        ("", "I did not find any words"),
        ("你好", "你好！"),
        ("谢谢！", "不客气"),
        ("我叫小明，住在上海。", "记下了：叫小明；住在上海。"),
        ("天空为什么是蓝色的？", "你还没有告诉我"),
    ],
)
def test_small_talk_and_what_is_beyond_it(said: str, answer: str) -> None:
    assert reply(said).startswith(answer)


def test_greets_by_name_once_it_knows_one() -> None:
    assert reply("hello", facts=[fact(1, "Name: Ada", "My name is Ada")]).startswith("Hello, Ada!")


def test_a_quotation_is_one_clipped_line_that_cannot_close_itself() -> None:
    told = 'The budget is "secret" and ' + "long " * 60 + "."
    (quote,) = quotations(reply("What is the budget?", [told]))
    assert "\n" not in quote and len(quote) <= 200 and quote.endswith("…") and "'secret'" in quote


def test_streams_the_same_words_in_pieces() -> None:
    material = ReplyMaterial("Where do I live?", START, Sections(), (), (), [message(1, ADA[0])])
    request = ModelRequest((ChatMessage("user", "Where do I live?"),), material)
    whole, end = complete(MODEL, request)
    *pieces, finish = MODEL.answer(replace(request, stream=True))
    assert len(pieces) > 1 and "".join(piece.text for piece in pieces if isinstance(piece, Piece)) == whole
    assert isinstance(finish, Finish) and finish == end
    assert (finish.reason, finish.model) == ("stop", "recap-extractive")
    assert finish.usage.estimated and finish.usage.prompt_tokens == tokens.estimate_message("Where do I live?")
    assert finish.usage.completion_tokens == tokens.estimate(whole)


ODD = st.text(st.characters(codec=None), max_size=300) | st.sampled_from(
    [
        "",
        "\x00",
        "\ud800 I live in \udfff Rome.",
        "My name is \x00 Ada",
        "😀😀😀",
        "I live in Rome.\u2028My name is Ada.",
        "{quote} {0} %s",
        '"""',
        "我住在上海。My name is Ada. Where do I live?",
        "Not {old}, {new}",
        "I don't want (.*)+. Not (.*), [a",
    ]
)
SAID = (
    st.sampled_from([*ADA, "We need 40 chairs, at most 500 euros.", "Where do I live?", "No PHP, please.", "hi"]) | ODD
)
MESSAGES = st.lists(st.tuples(SAID, st.sampled_from(["user", "assistant", "system", "tool"])), max_size=6)


def _messages(drawn: list[tuple[str, str]]) -> list[Message]:
    return [message(n, text, role) for n, (text, role) in enumerate(drawn, 1)]


@settings(deadline=None, max_examples=150)
@given(MESSAGES, st.lists(SAID, max_size=4), st.lists(SAID, max_size=3))
def test_every_digest_has_the_shape_quotes_its_sources_and_stays_bounded(
    drawn: list[tuple[str, str]], items: list[str], known: list[str]
) -> None:
    messages = _messages(drawn)
    previous = Sections(topic=" ".join(items), data=tuple(items), excluded=tuple(Excluded(text) for text in items))
    material = DigestMaterial(previous, messages, [fact(n, text, text) for n, text in enumerate(known, 1)])
    text, _ = complete(MODEL, ModelRequest((), material))
    text.encode()
    assert complete(MODEL, ModelRequest((), material))[0] == text
    data = json.loads(text)
    summary = Sections.from_dict(data["summary"])
    assert summary.as_dict() == data["summary"]
    for name in ("requirements", "constraints", "data", "open_questions", "discussed"):
        section = getattr(summary, name)
        assert len(section) <= MAX_ITEMS + len(items) and all(section)
        assert all(len(item) <= MAX_ITEM or item in " ".join(items) for item in section if item not in items)
    sources = {one.position: one for one in messages}
    for entry in data["facts"]:
        assert entry["quote"] and entry["quote"] in sources[entry["source"]].content
        assert sources[entry["source"]].role == "user" and entry["text"].strip()
        assert entry["category"] in FACT_CATEGORIES and 1 <= entry["importance"] <= 5
        assert entry["scope"] in ("user", "session")
        assert set(entry["supersedes"]) <= set(range(1, len(known) + 1))


@settings(deadline=None, max_examples=150)
@given(SAID, MESSAGES, st.booleans())
def test_every_reply_quotes_only_the_material(question: str, drawn: list[tuple[str, str]], stream: bool) -> None:
    messages = _messages(drawn)
    window = Excerpt("old", "t", tuple(messages[:2]), (1,), 1.0)
    known = [fact(1, "Likes tea", "I like tea")]
    material = ReplyMaterial(question, START, Sections(data=("Likes tea",)), known, [window], messages)
    text, _ = complete(MODEL, ModelRequest((), material, stream=stream))
    text.encode()
    assert text and complete(MODEL, ModelRequest((), material, stream=not stream))[0] == text
    here = " ".join([*(one.content for one in messages), "I like tea"])
    plain = re.sub(r"[^\w]+", "", here)
    for quote in quotations(text.split("Noted")[0]):
        assert re.sub(r"[^\w]+", "", quote) in plain


ADVERSARIAL: list[Callable[[], str]] = [
    lambda: "I " * 50_000,
    lambda: "and I " * 16_000,
    lambda: " " * 100_000,
    lambda: "a" * 100_000,
    lambda: "." * 100_000,
    lambda: "X is out because " * 6_000,
    lambda: "我，" * 50_000,
    lambda: "My name is " + "A" * 100_000,
    lambda: "I live in " + "Ab " * 30_000,
    lambda: "it must not " * 8_000,
    lambda: '"' * 100_000,
    lambda: "```\n" * 25_000,
    lambda: "I need 5 apples\n" * 6_000,
]


@pytest.mark.parametrize("number", range(len(ADVERSARIAL)))
def test_long_and_hostile_texts_are_read_in_no_time(number: int) -> None:
    text = ADVERSARIAL[number]()
    with soon_over():
        digest([text])
        reply(text, [text])


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I love making him happy.", []),
        ("I love to read, especially when it rains.", []),
        ("It must have been amazing!", []),
        ("I might move to Rome.", []),
        ("My friend says I live in a dream.", []),
        ("I really love hiking, it keeps me sane!", ["Loves hiking"]),
        ("Last Friday I went to a concert in Oslo.", ["Went to a concert in Oslo last Friday"]),
        ("We adopted a puppy and I'm learning Spanish.", ["Adopted a puppy", "Learning Spanish"]),
        ("My favourite book is Dune by Frank Herbert.", ["Favourite book: Dune by Frank Herbert"]),
        ("I sold my car and bought a cargo bike.", ["Sold my car and bought a cargo bike"]),
    ],
)
def test_takes_few_facts_and_complete_ones(said: str, facts: list[str]) -> None:
    assert texts(digest([said])[1]) == facts


@pytest.mark.parametrize(
    ("told", "correction", "now", "stale"),
    [
        ("The trip is from 3 to 17 April.", "Actually, we changed the dates: 10 to 24 April.", "10 to 24 April", "17"),
        ("My dentist appointment is on Monday at 9.", "No wait, the dentist is Tuesday at 11.", "Tuesday", "Monday"),
        ("I live in Tallinn.", "I moved to Lyon.", "Lyon", "Tallinn"),
        ("The budget is 800 euros.", "Not 800, make it 1,000 euros.", "1,000 euros", "800"),
        ("I drive a Volvo.", "I sold the Volvo and bought a bike.", "bike", "Drives"),
    ],
)
def test_a_correction_leaves_nothing_stale(told: str, correction: str, now: str, stale: str) -> None:
    found = " / ".join(texts(digest([told, correction])[1]))
    assert now in found and stale not in found
