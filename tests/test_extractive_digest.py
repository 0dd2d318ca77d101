"""The built-in model's digests: what each clause becomes, what a correction takes back, what gives way."""

from __future__ import annotations

import pytest

from memory.llm import complete
from memory.llm.builtin.sections import MAX_ITEMS
from memory.sections import Excluded, Sections
from memory.summary import answer
from tests.extractive_calls import ADA, MODEL, digest, fact, message, reply, request


def test_a_first_message_becomes_facts_with_their_sources() -> None:
    summary, facts = digest([ADA[0]])
    assert facts == [
        {
            "text": text,
            "category": "identity",
            "importance": importance,
            "scope": "user",
            "source": 1,
            "quote": quote,
            "supersedes": [],
        }
        for text, importance, quote in (
            ("Name: Ada", 5, "My name is Ada"),
            ("Allergic to peanuts", 5, "I'm allergic to peanuts."),
            ("Lives in Tallinn", 4, "I live in Tallinn."),
        )
    ]
    assert summary.constraints == ("Allergic to peanuts",)
    assert summary.data == ("Name: Ada", "Lives in Tallinn")
    assert summary.topic


def test_each_clause_goes_to_its_section() -> None:
    summary, facts = digest(
        [
            "We need a venue for 40 people in Lisbon, at most 500 euros a head.",
            "I don't want the beach because of the wind.",
            "The station is 800 m away. We agreed on a jazz trio.",
            "What does a caterer cost?",
        ]
    )
    assert summary.requirements == ("Needs a venue for 40 people in Lisbon",)
    assert summary.constraints == ("At most 500 euros a head",)
    assert summary.excluded == (Excluded("the beach", "the wind"),)
    assert summary.data == ("The station is 800 m away.", "We agreed on a jazz trio.")
    assert summary.open_questions == ("What does a caterer cost?",)
    assert {entry["scope"] for entry in facts} == {"session"}


def test_a_correction_supersedes_the_known_fact_and_leaves_the_summary() -> None:
    known = [
        fact(7, "Lives in Tallinn", "I live in Tallinn"),
        fact(8, "Likes tea", "I like tea", category="preference"),
    ]
    previous = Sections(data=("Lives in Tallinn", "Likes tea"))
    summary, facts = digest(["No, I moved to Lyon. I like coffee."], previous, known)
    assert [(entry["text"], entry["supersedes"]) for entry in facts] == [("Moved to Lyon", [7]), ("Likes coffee", [])]
    assert summary.data == ("Likes tea", "Moved to Lyon", "Likes coffee")


@pytest.mark.parametrize(
    ("known", "quote", "said", "text"),
    [
        ("Budget: 500 euros", "my budget is 500 euros", "actually my budget is 700 euros", "Budget: 700 euros"),
        ("Name: Ada", "My name is Ada", "Not Ada, Ida", "Name: Ida"),
        ("User's name is Ada", "I'm Ada", "My name is Ida", "Name: Ida"),
        ("User lives in Tallinn", "in Tallinn", "I live in Lyon now", "Lives in Lyon"),
        ("Lives in Tallinn", "I live in Tallinn", "We moved: I live in Lyon now.", "Lives in Lyon"),
        ("Lives in Tallinn", "I live in Tallinn", "Big news — I live in Lyon now", "Lives in Lyon"),
        ("Lives in Tallinn", "I live in Tallinn", "sorry; I live in Lyon now", "Lives in Lyon"),
        ("Lives in Tallinn", "I live in Tallinn", "It was too cold, so I live in Lyon now", "Lives in Lyon"),
        ("Lives in Tallinn", "I live in Tallinn", "btw I live in Lyon now", "Lives in Lyon"),
        ("Budget: 800 euros", "The budget is 800 euros", "Not 800, make it 1,000 euros.", "Budget: 1,000 euros"),
        ("Budget: 800 euros", "The budget is 800 euros", "make that 1,000", "Budget: 1,000 euros"),
        ("Budget: 800 euros", "The budget is 800 euros", "hmm, let's say 1,000 instead", "Budget: 1,000 euros"),
        ("Budget: 800 euros", "The budget is 800 euros", "raise the budget to 1.5k", "Budget: 1.5k"),
        ("Deadline: Friday", "The deadline is Friday", "push it to Monday", "Deadline: Monday"),
        ("At most 10 people per class", "At most 10 people per class", "make that 15", "At most 15 people per class"),
        (
            "Use Redis for the queue",
            "Let's use Redis for the queue",
            "We'll use Postgres for the queue",
            "Use Postgres for the queue",
        ),
        (
            "Use Redis for the queue",
            "Let's use Redis for the queue",
            "Let's use Postgres instead",
            "Use Postgres for the queue",
        ),
        ("预算是5000元", "我的预算是5000元", "不是5000，是8000元", "预算是8000元"),
        ("Likes meat", "I like meat", "I no longer like meat", "No longer likes meat"),
        ("住在上海", "我住在上海", "我搬到北京了", "搬到北京了"),
    ],
)
def test_corrections(known: str, quote: str, said: str, text: str) -> None:
    _, facts = digest([said], known=[fact(3, known, quote)])
    assert [(entry["text"], entry["supersedes"]) for entry in facts] == [(text, [3])]


@pytest.mark.parametrize(
    "said",
    [
        "make me a cake",
        "let's say goodbye",
        "Let's make it happen",
        "not today, thanks",
        "make that sandwich",
        "I have 15 chairs",
        "let's say 300 grams of flour",
    ],
)
def test_what_only_looks_like_a_correction_takes_nothing_back(said: str) -> None:
    _, facts = digest([said], known=[fact(3, "Budget: 800 euros", "The budget is 800 euros")])
    assert [entry for entry in facts if entry["supersedes"]] == []


def test_only_the_later_of_two_corrections_in_one_batch_is_told() -> None:
    known = [fact(3, "Lives in Oslo", "I live in Oslo")]
    summary, facts = digest(["I moved to Rome.", "Sorry, I meant I moved to Lyon."], known=known)
    assert [(entry["text"], entry["source"], entry["supersedes"]) for entry in facts] == [("Moved to Lyon", 2, [3])]
    assert summary.data == ("Moved to Lyon",)


def test_what_is_known_is_not_told_again() -> None:
    known = [fact(3, "Lives in Tallinn, Estonia", "I live in Tallinn, Estonia")]
    assert digest(["I live in Tallinn."], known=known)[1] == []


def test_options_are_ruled_out_and_put_back() -> None:
    previous = digest(["React is out, it's too heavy.", "No PHP, please."])[0]
    assert previous.excluded == (Excluded("React", "it's too heavy"), Excluded("PHP"))
    assert digest(["Let's reconsider React."], previous)[0].excluded == (Excluded("PHP"),)
    assert digest(["PHP is fine after all"], previous)[0].excluded == (Excluded("React", "it's too heavy"),)


def test_open_questions_close_when_they_are_answered() -> None:
    asked = "What does a caterer in Lisbon cost?"
    empty = "I find nothing about that in what you have told me."
    summary = digest([asked, message(2, empty, "assistant")])[0]
    assert summary.open_questions == (asked,)
    answered = message(3, "A caterer in Lisbon costs about 30 euros a head.", "assistant")
    assert digest([answered], summary)[0].open_questions == ()
    assert digest([message(3, "The caterer in Lisbon told me it costs 30 euros")], summary)[0].open_questions == ()
    assert digest([asked, message(2, "About 30 euros a head.", "assistant")])[0].open_questions == ()
    assert digest(["How are you?"])[0].open_questions == ()


def test_what_it_could_not_know_is_no_open_question() -> None:
    nothing = reply("What's the capital of France?", ADA)
    for general in ("What's the capital of France?", "who won the world cup in 2018?", "how do I cook rice?"):
        assert digest([*ADA, message(3, general), message(4, nothing, "assistant")])[0].open_questions == ()
    for own in ("When is my flight?", "Which hospital do I work at?"):
        assert digest([*ADA, message(3, own), message(4, nothing, "assistant")])[0].open_questions == (own,)
    answered = [*ADA, message(3, "what can't I eat?"), message(4, reply("what can't I eat?", ADA), "assistant")]
    assert digest(answered)[0].open_questions == ()
    assert digest(["Can you write a function that sorts?", message(2, nothing, "assistant")])[0].open_questions == ()


def test_lists_under_a_heading_are_what_the_heading_says() -> None:
    summary = digest(["Requirements:\n- login with Google\n- dark mode\n\nLimits:\n- no external fonts\n\nBye!"])[0]
    assert summary.requirements == ("Login with Google", "Dark mode")
    assert summary.constraints == ("No external fonts",)
    summary = digest(["Requirements: users must be able to cancel up to 24 hours before; payments through Stripe"])[0]
    assert summary.requirements == ("Users must be able to cancel up to 24 hours before", "Payments through Stripe")


def test_a_greeting_gives_way_once_there_is_more_to_keep() -> None:
    first = digest(["hello"])[0]
    assert first.discussed == ("hello",)
    assert digest(["I live in Tallinn"], first)[0].discussed == ()


def test_words_older_than_what_is_known_take_nothing_back() -> None:
    known = [fact(3, "Lives in Lyon", "I live in Lyon", day=5)]
    assert digest(["I live in Tallinn"], known=known)[1] == []


def test_the_models_own_replies_are_not_news() -> None:
    own = message(2, reply("Where do I live?", ADA), "assistant")
    summary, facts = digest([message(1, "Where do I live?"), own])
    assert not facts and summary == Sections(discussed=("Where do I live?",))


@pytest.mark.parametrize("said", ["hi", "thanks!", "😀", "Where do I live?"])
def test_a_summary_is_never_empty_once_something_was_said(said: str) -> None:
    assert not digest([said])[0].empty
    assert answer.read(complete(MODEL, request([said]))[0], Sections()).sections == digest([said])[0]


def test_what_a_person_writes_is_not_taken_for_a_models_thoughts() -> None:
    said = ["My dog is called Rex. We need 40 </think> chairs <think> of oak."]
    read = answer.read(complete(MODEL, request(said))[0], Sections())
    assert read.sections == digest(said)[0] and len(read.facts) == 2


def test_facts_come_from_the_user_alone_and_others_are_named_in_the_summary() -> None:
    said = [message(1, "I live in Rome", "assistant", "Mia"), message(2, "I ran 10 km on Sunday", "assistant", "Mia")]
    summary, facts = digest(said)
    assert facts == [] and summary.data == ("Mia: I ran 10 km on Sunday",)


def test_code_quotations_and_texts_to_work_on_are_not_statements() -> None:
    said = ["```\nI live in code\n```", "> My name is Bob", "Translate: I live in Rome. I work at Acme."]
    assert digest(said)[1] == []


def test_sections_are_bounded_and_oldest_small_talk_gives_way_first() -> None:
    said = [f"We need {number} chairs made of oak." for number in range(30)]
    said += [f"The garden wall number {number} looks rather green from afar." for number in range(60)]
    summary, facts = digest(said)
    assert len(summary.requirements) == MAX_ITEMS and "29 chairs" in summary.requirements[-1]
    assert len(summary.data) <= MAX_ITEMS and len(summary.discussed) <= MAX_ITEMS
    assert len(facts) <= 40


def test_a_summary_that_somebody_made_longer_keeps_its_length() -> None:
    previous = Sections(
        topic="The move of the whole archive, and who pays",
        requirements=tuple(f"Requirement number {n} as the person wrote it" for n in range(20)),
        data=tuple(f"Room {n} holds {n * 7} boxes of {'old ' * 30}maps" for n in range(12)),
    )
    summary = digest([f"Box {n} is blue." for n in range(30)], previous)[0]
    assert summary.topic == previous.topic
    assert len(summary.requirements) >= 20
    assert len(str(summary)) >= 0.75 * len(str(previous))


def test_digest_after_digest_says_nothing_twice() -> None:
    said = [*ADA, "We need 40 chairs.", "No PHP, please.", "What does oak cost?"]
    once, facts = digest(said)
    known = [fact(n, entry["text"], entry["quote"]) for n, entry in enumerate(facts, 1)]
    again, more = digest(said, once, known)
    assert again == once and more == []


@pytest.mark.parametrize(
    ("said", "topic"),
    [
        (["I live in Tallinn.", "I'm planning a trip to Porto in May.", "I like figs."], "Trip to Porto in May"),
        (["I'm planning a project: a booking app for a small studio"], "Booking app for a small studio"),
        (["My girlfriend and I want to go to Japan in April"], "Going to Japan in April"),
        (["My name is Ada, I live in Tallinn and I am allergic to peanuts."], "About Ada"),
        (["我叫小明，住在上海。"], "关于小明"),
        (["我住在上海", "我下个月要去东京出差"], "去东京出差"),
    ],
)
def test_the_topic_is_what_the_person_is_up_to(said: list[str], topic: str) -> None:
    summary = digest(said)[0]
    assert summary.topic == topic
    assert digest(["I work as a cook."], summary)[0].topic == topic
