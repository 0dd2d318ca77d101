"""The rules that read sentences: what counts as a statement, what it says, and what it takes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm.builtin import sentences, statements
from memory.llm.builtin.corrections import correction
from memory.llm.builtin.personal import Statement, read, reread
from memory.llm.builtin.readings import statement_in
from memory.llm.builtin.refusals import refusal, reopening
from memory.llm.builtin.topic import topic_of
from memory.llm.builtin.wording import sameness, stems
from memory.sections import Excluded


def read_all(text: str) -> list[Statement]:
    own = statements.own_statements(sentences.split(text))
    made = [read(clause) for sentence in own for clause in statements.clauses(sentence.text)]
    return [statement for statement in made if statement is not None]


def said(text: str) -> list[str]:
    return [statement.text for statement in read_all(text)]


SPLIT = [
    ("I live here. Do you?", ["I live here.", "Do you?"]),
    ("Dr. Lee paid 3.50 at 5 p.m. today", ["Dr. Lee paid 3.50 at 5 p.m. today"]),
    ("e.g. this, i.e. that", ["e.g. this, i.e. that"]),
    ("A cat called Fig. It came on Jan. 5", ["A cat called Fig.", "It came on Jan. 5"]),
    ("我住在上海。我喜欢茶！你呢？", ["我住在上海。", "我喜欢茶！", "你呢？"]),
    ("- one thing\n- another thing\n\n1. third", ["one thing", "another thing", "third"]),
    ("wrapped in\nthe middle of it", ["wrapped in\nthe middle of it"]),
    ("Before\n```python\nI = 'live in code'\n```\nAfter", ["Before", "After"]),
    ("> I live in a quoted mail\nI don't", ["I don't"]),
    ("", []),
    ("😀", ["😀"]),
]


@pytest.mark.parametrize(("text", "expected"), SPLIT)
def test_splits_into_the_writers_own_sentences(text: str, expected: list[str]) -> None:
    assert [sentence.text for sentence in sentences.split(text)] == expected


READS = [
    ("My name is Ada and I live in Tallinn.", ["Name: Ada", "Lives in Tallinn"]),
    ("Hi, I'm Ada, I'm 34 and I'm from Portland, Oregon.", ["Name: Ada", "34 years old", "From Portland, Oregon"]),
    ("hi im ada", []),  # too little to tell a name from an adjective
    ("i live in tallinn", ["Lives in tallinn"]),
    ("Please call me Ida.", ["Name: Ida"]),
    ("I’m allergic to peanuts, shellfish and eggs.", ["Allergic to peanuts, shellfish and eggs"]),
    ("I have a severe nut allergy", ["Allergic to nut"]),
    ("I'm lactose intolerant and vegan", ["Lactose intolerant"]),
    ("I recently moved to New York City with my cat.", ["Moved to New York City"]),
    ("I've been living in Rome for three years", ["Lives in Rome"]),
    ("We're based in Lisbon", ["Lives in Lisbon"]),
    ("I work at Acme and love hiking", ["Works at Acme", "Loves hiking"]),
    ("I work as a nurse at Mercy Hospital.", ["Works as a nurse at Mercy Hospital"]),
    ("I'm a software engineer", ["Works as software engineer"]),
    ("I got a new job at Globex!", ["Works at Globex"]),
    ("We'd like to see Kyoto", ["Would like to see Kyoto"]),
    ("We land in Tokyo on April 3rd", ["Land in Tokyo on April 3rd"]),
    ("My sister's birthday is 5 May", ["Sister's birthday: 5 May"]),
    ("Title: I live in fear", []),
    ("Bob: I live in Rome", []),
    ("我去过日本", []),
    ("I no longer work at Acme", ["No longer works at Acme"]),
    ("My birthday is on 3 May.", ["Birthday: 3 May"]),
    ("I was born in 1990", ["Born in 1990"]),
    ("I'm German", ["Nationality: German"]),
    ("My wife's name is Mia.", ["Wife's name: Mia"]),
    ("My dog is called Rex", ["Dog's name: Rex"]),
    ("My sister Mia lives in Oslo", ["Sister Mia lives in Oslo"]),
    ("My daughter is allergic to cats", ["Daughter is allergic to cats"]),
    ("I have two kids and a cat named Fig.", ["Has two kids and a cat named Fig"]),
    ("My favourite colour is green.", ["Favourite colour: green"]),
    ("I really like strong coffee, you know", ["Likes strong coffee"]),
    ("I can't stand olives.", ["Dislikes olives"]),
    ("I don't like olives", ["Dislikes olives"]),
    ("I no longer like tea", ["No longer likes tea"]),
    ("I don't eat meat anymore", ["No longer eats meat"]),
    ("I stopped eating meat", ["No longer eats meat"]),
    ("I never drink alcohol", ["Doesn't drink alcohol"]),
    ("I speak French and German", ["Speaks French and German"]),
    ("My budget is 500 euros.", ["Budget: 500 euros"]),
    ("We have a budget of 3,000 euros and four weeks", ["Budget: 3,000 euros"]),
    ("I have 3 cats: Tom, Kit and Fig", ["Has 3 cats: Tom, Kit and Fig"]),
    ("I'm not vegan", ["Not vegan"]),
    ("The total budget has risen to 900 euros", ["Total budget: 900 euros"]),
    ("The deadline is Friday", ["Deadline: Friday"]),
    ("My email is ada@example.com", ["Email: ada@example.com"]),
    ("I'm going to Paris next week", ["Going to Paris next week"]),
    ("I'm moving to Berlin next month", ["Moving to Berlin next month"]),
    ("I went to a pottery class yesterday.", ["Went to a pottery class yesterday"]),
    ("I adopted a puppy", ["Adopted a puppy"]),
    ("I moved the meeting to Friday", ["Moved the meeting to Friday"]),
    ("我叫小明，住在上海，对花生过敏。", ["叫小明", "住在上海", "对花生过敏"]),
    ("我搬到北京了。", ["搬到北京了"]),
    ("我喜欢喝茶。我不喜欢咖啡。", ["喜欢喝茶", "不喜欢咖啡"]),
    ("我在谷歌工作", ["在谷歌工作"]),
    ("我的预算是500元", ["预算是500元"]),
]


@pytest.mark.parametrize(("text", "expected"), READS)
def test_reads_what_people_say_of_themselves(text: str, expected: list[str]) -> None:
    assert said(text) == expected


SILENT = [
    "Where do I live?",
    "where do i live",
    "Do I like tea",
    "If I lived in Paris, I'd eat croissants.",
    "Suppose I live in Rome.",
    "I wish I lived in Rome",
    "Imagine my name is Bob",
    "Bob says I live in Rome.",
    "My boss thinks I work at Globex and I live in Oslo",
    'She said: "Hello. I live in Paris. My name is Eve."',
    "According to them I live in Rome",
    "He lives in Rome",
    "They moved to Lyon",
    "Translate this into French: I live in Rome.",
    "Please rewrite: My name is Bob. I work at Acme.",
    "I like it.",
    "I love you",
    "I love that!",
    "I'm happy",
    "I'm a bit tired",
    "I'm so glad you asked",
    "I'm sorry",
    "I'm fine, thanks",
    "I have a question",
    "I have to go",
    "I live in fear",
    "I can't wait!",
    "I'd live in Spain",
    "```\nI live in code\n```",
    "> I live in a quotation",
    "如果我住在北京，我会很开心。",
    "我住在哪里？",
    "你喜欢什么",
    "他说我住在北京",
]


@pytest.mark.parametrize("text", SILENT)
def test_questions_suppositions_and_other_peoples_words_state_nothing(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize("text", [text for text, expected in READS if expected])
def test_a_restated_fact_reads_back_as_the_same_statement(text: str) -> None:
    for statement in read_all(text):
        if statement.attribute:
            again = reread(statement.text)
            if again is not None:
                assert (again.attribute, again.ended) == (statement.attribute, statement.ended)


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("User lives in Tallinn", "lives-in"),
        ("The user's name is Ada", "name"),
        ("The user is allergic to peanuts", "allergy:peanut"),
        ("Works at Acme", "employer"),
        ("Budget is 500 euros", "budget"),
        ("Likes tea", "taste:tea"),
        ("They moved to Lyon", "lives-in"),
    ],
)
def test_reads_facts_that_another_model_worded(text: str, attribute: str) -> None:
    statement = reread(text)
    assert statement is not None and statement.attribute == attribute


REPLACES = [
    ("I moved to Lyon", "I live in Tallinn", True),
    ("I live in Tallinn", "I live in Tallinn, Estonia", False),
    ("My name is Ida", "My name is Ada", True),
    ("Our budget is 700", "My budget is 500", True),
    ("I work at Globex", "I work at Acme", True),
    ("I'm 35", "I'm 34 years old", True),
    ("I no longer like tea", "I like tea", True),
    ("I hate tea", "I love tea", True),
    ("I like coffee", "I like tea", False),
    ("My dog is called Max", "My dog is called Rex", False),
    ("I don't live in Paris", "I live in Tallinn", False),
    ("I no longer work at Globex", "I work at Acme", False),
    ("I left my job", "I work at Acme", False),
    ("I'm not allergic to nuts", "I'm allergic to nuts", True),
    ("My favourite colour is red", "My favourite colour is green", True),
    ("My favourite food is rice", "My favourite colour is green", False),
    ("I used to live in Rome", "I live in Tallinn", False),
    ("I moved to Rome ten years ago", "I live in Tallinn", False),
    ("我搬到北京了", "我住在上海", True),
    ("我喜欢咖啡", "我喜欢茶", False),
]


@pytest.mark.parametrize(("new", "old", "expected"), REPLACES)
def test_a_later_statement_takes_back_only_what_it_contradicts(new: str, old: str, expected: bool) -> None:
    later, earlier = read_all(new)[-1:], read_all(old)
    assert bool(later and later[0].replaces(earlier[0])) is expected


REFUSES = [
    ("I don't want React because it's too heavy.", Excluded("React", "it's too heavy")),
    ("Kubernetes is out, it's too complex.", Excluded("Kubernetes", "it's too complex")),
    ("No PHP, please.", Excluded("PHP")),
    ("Let's rule out the beach because of the wind", Excluded("the beach", "the wind")),
    ("We decided against Oracle since it costs too much", Excluded("Oracle", "it costs too much")),
    ("The old mill is not an option", Excluded("The old mill")),
    ("I don't want to fly, it's too stressful.", Excluded("flying", "it's too stressful")),
    ("I considered Django but it's slow, so no Django.", Excluded("Django")),
    ("不考虑海边，风太大", Excluded("海边", "风太大")),
    ("I'd rather not fly", Excluded("flying")),
    ("I'd rather not use Docker, the ops team hates it.", Excluded("Docker", "the ops team hates it")),
    ("不要香菜", Excluded("香菜")),
    ("I don't want to bother you", None),
    ("No problem!", None),
    ("Not really", None),
    ("No, I moved to Lyon", None),
    ("I don't want it", None),
    ("I like React", None),
]


@pytest.mark.parametrize(("text", "expected"), REFUSES)
def test_refusals_with_their_reasons(text: str, expected: Excluded | None) -> None:
    found = [refusal(clause) for clause in statements.clauses(text)]
    assert next((item for item in found if item), None) == expected


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("Let's reconsider React", "React"),
        ("Kubernetes is fine after all.", "Kubernetes"),
        ("I changed my mind about the beach", "the beach"),
        ("Oracle is back on the table", "Oracle"),
        ("On second thought, flying is fine", "flying"),
        ("重新考虑香菜", "香菜"),
        ("I'm fine", None),
        ("React is out", None),
    ],
)
def test_reopenings(text: str, option: str | None) -> None:
    found = [reopening(clause) for clause in statements.clauses(text)]
    assert next((item for item in found if item), None) == option


KINDS = [
    ("We need a venue for 40 people", "requirement"),
    ("It has to be in Lisbon", "requirement"),
    ("I want a quiet room", "requirement"),
    ("Make sure it works offline", "requirement"),
    ("At most 500 euros per head", "constraint"),
    ("It must be done no later than May 5", "constraint"),
    ("We can't spend more than 20 hours on it", "constraint"),
    ("I can't travel in August", "constraint"),
    ("我们需要一个会议室", "requirement"),
    ("最多500元", "constraint"),
    ("Remember that the wifi password is hunter2", "other"),
    ("I can't wait to see it", None),
    ("I want to thank you", None),
    ("It must have been tough", None),
    ("I was back by 10", None),
    ("The sky is blue", None),
]


@pytest.mark.parametrize(("text", "category"), KINDS)
def test_needs_limits_and_what_is_to_be_kept(text: str, category: str | None) -> None:
    made = [statement_in(clause, text) for clause in statements.clauses(text)]
    assert next((item.category for item in made if item), None) == category


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Not Ada, Ida", ("Ada", "Ida")),
        ("No, Ida, not Ada.", ("Ada", "Ida")),
        ("It's Lyon, not Tallinn", ("Tallinn", "Lyon")),
        ("It's not 500 but 700", ("500", "700")),
        ("Not 800, make it 1,000 euros.", ("800", "1,000 euros")),
        ("Their parents pay, so let's say £3,000 instead", ("", "£3,000")),
        ("make that 15", ("", "15")),
        ("make that clear", None),
        ("I am not sure about that", None),
        ("Why not", None),
    ],
)
def test_one_thing_in_anothers_place(text: str, expected: tuple[str, str] | None) -> None:
    found = correction(text)
    assert (found and (found.old, found.new)) == expected


SAME = [
    ("I like the tea.", "i like tea", True),
    ("I'm tired", "I am tired", True),
    ("Budget: 500 euros", "Budget: 700 euros", False),
    ("Costs $500", "Costs €500", False),
    ("500$", "500€", False),
    ("It is -5 degrees", "It is 5 degrees", False),
    ("We can go", "We cannot go", False),
    ("We can't go", "We cannot go", True),
    ("Ada likes tea", "Eve likes tea", False),
    ("Ada pays Eve", "Eve pays Ada", False),
    ("Before May", "After May", False),
    ("At most 5", "At least 5", False),
    ("Lives in Rome", "Lived in Rome", False),
    ("My sister", "Your sister", False),
    ("C++ is out", "C is out", False),
    ("我喜欢茶", "我不喜欢茶", False),
]


@pytest.mark.parametrize(("one", "other", "same"), SAME)
def test_items_that_differ_in_a_number_a_negation_or_a_name_are_never_the_same(
    one: str, other: str, same: bool
) -> None:
    assert (sameness(one) == sameness(other)) is same


@pytest.mark.parametrize(
    ("one", "other"),
    [("moved", "live"), ("children", "kids"), ("running", "run"), ("allergic", "allergies"), ("cities", "city")],
)
def test_forms_and_synonyms_meet(one: str, other: str) -> None:
    assert stems(one) == stems(other)


def test_the_topic_is_steady_and_made_of_the_conversations_words() -> None:
    first = topic_of("", [], ["We plan the wedding in Lisbon.", "The wedding needs a caterer."], [])
    assert "wedding" in first
    later = topic_of(first, ["Needs a caterer for the wedding"], ["And what about the flowers?"], [])
    assert set(first.split(", ")) & set(later.split(", "))
    assert topic_of("How the garden party at the lake should go", [], ["The wedding. The wedding."], []).startswith(
        "How"
    )


@given(st.text(max_size=400))
def test_no_text_upsets_the_rules(text: str) -> None:
    parts = sentences.split(text)
    for part in parts:
        assert part.text in text
        statements.is_question(part.text)
        statements.is_request(part.text)
        statements.is_small_talk(part.text)
        correction(part.text)
        reread(part.text)
        for clause in statements.clauses(part.text):
            assert clause.text in part.text
            read(clause), refusal(clause), reopening(clause), statement_in(clause, part.text)
    sameness(text), stems(text)


_WORDS = [
    "I",
    "I'm",
    "my",
    "name",
    "is",
    "not",
    "live",
    "in",
    "Rome",
    "and",
    ",",
    ".",
    "if",
    "said",
    "?",
    "budget",
    "500",
]
_WORDS += [
    "don't",
    "want",
    "no",
    "actually",
    "because",
    "it",
    "has",
    "to",
    "我",
    "住在",
    "，",
    "。",
    '"',
    "out",
    "after",
    "all",
]


@given(st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join))
def test_no_order_of_the_rules_own_words_upsets_them(text: str) -> None:
    for part in sentences.split(text):
        for clause in statements.clauses(part.text):
            statement = statement_in(clause, part.text)
            refusal(clause), reopening(clause)
            if statement is not None:
                assert statement.text
