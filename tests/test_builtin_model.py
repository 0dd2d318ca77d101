"""The built-in model: few facts and true ones, corrections that hold, answers in the person's own words."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.llm import ChatMessage, ModelRequest, complete
from models.facts import FACT_CATEGORIES
from models.messages import Excerpt
from models.sections import SECTIONS, Excluded, Sections
from tests.builtin import ADA, MODEL, MOVE, chat_of, digest, fact, message, prompt, quotations, reply, request, texts

# -- facts

SPOKEN = """
My name is Ada and I live in Tallinn. | Name: Ada | Lives in Tallinn
I live in Bristol, at 17 Marlow Road. | Lives in Bristol, at 17 Marlow Road
We moved to Bergen, Strandgaten 5, in May | Moved to Bergen, Strandgaten 5
actually the delivery got moved to March 19 | Delivery: March 19
Hi, I'm Ada, I'm 34 and I'm from Portland, Oregon. | Name: Ada | 34 years old | From Portland, Oregon
I’m allergic to nuts, shellfish and eggs. | Allergic to nuts | Allergic to shellfish | Allergic to eggs
I have two kids and a cat named Fig. | Has two kids and a cat named Fig
My wife's name is Mia. | Wife's name: Mia
We land in Tokyo on 3 April | Lands in Tokyo on 3 April
I have an exam in Lyon next month - so nervous!
I decided to sell the boat. | Decided to sell the boat
I decided to sell the boat, which was hard.
We'll use oak instead of pine. | Use oak instead of pine
I love making him happy
I'm a bit tired of it all
I teach maths at St Mary's. Well, I did until Easter.
We've got two rabbits, although one is technically my sister's
my dog is called Biscuit hes a staffy, 3 yrs old
The landlord wants to put the rent up to 1150 in march
I love the cello, just not at 2 am
Bob says I live in Rome.
Maybe I live in the wrong place
She said: "Hello. I live in Paris. My name is Eve."
Translate this into French: I live in Rome.
```	I live in code	```	> My name is Bob
Where do I live?
I'm allergic to peanuts, can I eat sushi? | Allergic to peanuts
I'm a nurse in Leeds and I love jazz - what should I read? | Works as a nurse in Leeds | Loves jazz
I hate cilantro so what can I use instead? | Dislikes cilantro
Vivo en Sevilla, ¿dónde puedo nadar? | Vive en Sevilla
If I were vegan, what could I eat?
Do I live in Rome, or was it Milan?
I just started a new job as a nurse | Works as a nurse
I drive a 2015 Honda Civic | Drives a 2015 Honda Civic
I drive my kids to school
我叫小明，住在上海，对花生过敏。 | 叫小明 | 住在上海 | 对花生过敏
如果我住在北京，我会很开心。
我昨天看了一部老电影，叫《城南旧事》。
我不喜欢咖啡 | 不喜欢咖啡
Hallo, ich heiße Jens und wohne in Bremen | Name: Jens | Wohnt in Bremen
j suis végane et j'habite à Lille | Végane | Habite à Lille
me llamo Inés y vivo en Vigo | Nombre: Inés | Vive en Vigo
sono allergico alle noci | Allergia: noci
sono allergica all'arachide | Allergia: arachide
je suis allergique aux kiwis | Allergique aux kiwis
moro no Porto, sou enfermeira | Mora no Porto | Profissão: enfermeira
ik woon in Gent en eet geen vlees | Woont in Gent | Eet geen vlees
mam na imię Ola, mieszkam w Gdyni | Imię: Ola | Mieszka w Gdyni
меня зовут Олег | Имя: Олег
ich bin stark gegen Bienenstiche allergisch | Allergisch gegen Bienenstiche
Wir sind umgezogen: ich wohne jetzt in Linz | Wohnt in Linz
er schrieb mir: ich wohne in Rom
she wrote: I live in Rome
We are renovating our kitchen, the budget is 14,000 euros. | Budget: 14,000 euros
Wir renovieren das Bad, das Budget ist 8000 Euro. | Budget: 8000 Euro
Nous refaisons la cuisine, le budget est de 9000 euros. | Budget : 9000 euros
Estamos reformando la cocina, el presupuesto es de 9000 euros. | Presupuesto: 9000 euros
Rifacciamo il bagno, il budget è di 7000 euro. | Budget: 7000 euro
We verbouwen de keuken, het budget is 9000 euro. | Budget: 9000 euro
Vamos reformar a cozinha, o orçamento é de 9000 euros. | Orçamento: 9000 euros
im vegan btw and allergic to nuts | Vegan | Allergic to nuts
wenn ich in Rom wohnen würde, wäre ich froh
Write a story: I live on Mars and my name is Zog.
From: Kim Vale <kim@vale.example>\tSubject: rent\t\tHi, I live in Cork.\t\tWhat should I answer?
"""


@pytest.mark.parametrize("row", SPOKEN.strip().splitlines())
def test_takes_few_facts_and_complete_ones_and_none_of_text_to_work_on(row):
    said, *expected = row.replace("\t", "\n").split(" | ")
    assert sorted(texts(digest([said])[1])) == sorted(expected)


@pytest.mark.parametrize(
    ("known", "quote", "said", "text"),
    [
        ("Name: Ada", "My name is Ada", "Not Ada, Ida", "Name: Ida"),
        ("Lives in Tallinn", "I live in Tallinn", "We moved: I live in Lyon now.", "Lives in Lyon"),
        ("Lives in Bristol, at 17 Marlow Road", "I live in Bristol", "I moved to Leeds.", "Moved to Leeds"),
        ("Budget: 800 euros", "The budget is 800 euros", "make that 1,000", "Budget: 1,000"),
        ("Budget: 2000 euro", "budget is about 2000 euro", "sorry i meant 2500 euro", "Budget: 2500 euro"),
        ("Vet: Dr. Malik", "Our vet is Dr. Malik", "No, Dr. Shaw, not Dr. Malik", "Vet: Dr. Shaw"),
        ("Works at Acme", "I work at Acme", "I don't work there any more", "I don't work there any more"),
        ("Has a dog named Bruno", "I have a dog named Bruno", "Bruno died :(", "Bruno died :("),
        ("Boss's name: Tomek", "My boss is Tomek", "Tomek left, Kasia now", "Tomek left, Kasia now"),
        ("住在上海", "我住在上海", "我搬到北京了", "住在北京"),
    ],
)  # fmt: skip
def test_corrections_of_known_facts(known, quote, said, text):
    _, facts = digest([said], known=[fact(3, known, quote)])
    assert [(one["text"], one["supersedes"]) for one in facts] == [(text, ["F3"])]


CHANGES = [
    "make that 15",
    "I meant Thursday",
    "No, 19 Elm Road",
    "We named her Nala, not Luna",
    "Let's use Kafka instead",
]
ENDINGS = ["I quit smoking last year", "Maybe I won't live in Oslo anymore", "my sister left early"]
ENDINGS += ["pls don't remember that I moved to Rome", "forget that I live in Oslo"]


@pytest.mark.parametrize("said", [*CHANGES, *ENDINGS])
def test_what_fits_no_known_fact_changes_and_ends_none(said):
    known = ("Max 10 people per class", "Pup called Luna", "Lives in Bristol, at 17 Marlow Road", "41 years old")
    facts = [
        fact(number, text, "") for number, text in enumerate((*known, "Lives in Oslo", "Has a dog named Bruno"), 3)
    ]
    assert digest([said], known=facts)[1] == []
    assert "can't tell" in reply(said, facts=facts) or said in ENDINGS


# -- the summary


def test_each_clause_goes_to_its_section():
    said = ["We need a venue for 40 people in Lisbon, at most 500 euros a head."]
    said += ["I don't want the beach because of the wind."]
    said += ["It took 3 hours to find a jazz trio.", "What does a caterer cost?"]
    summary, facts = digest(said)
    assert summary.requirements == ("Needs a venue for 40 people in Lisbon",)
    assert summary.constraints == ("At most 500 euros a head",)
    assert summary.excluded == (Excluded("the beach", "the wind"),)
    assert summary.data == ("It took 3 hours to find a jazz trio.",)
    assert summary.open_questions == ("What does a caterer cost?",)
    assert {one["scope"] for one in facts} == {"session"}
    summary, _ = digest(["Must have: a balcony.", "The flat must have a lift.", "My son must have been asleep."])
    assert summary.requirements == ("Must have a balcony", "Must have a lift")


def test_options_are_ruled_out_and_put_back():
    previous = digest(["React is out, it's too heavy.", "No PHP, please.", "不考虑海边，风太大"])[0]
    assert previous.excluded == (Excluded("React", "it's too heavy"), Excluded("PHP"), Excluded("海边", "风太大"))
    assert digest(["Let's reconsider React."], previous)[0].excluded == previous.excluded[1:]
    assert digest(["No wait, the dentist is at 11"])[0].excluded == ()
    said = ["Not: the ground floor.", "A shared kitchen is a no-go.", "Not: I meant Monday.", "Not really: it rained."]
    assert digest(said)[0].excluded == (Excluded("the ground floor"), Excluded("A shared kitchen"))


def test_the_assistants_words_are_never_memory():
    other = message(2, "The budget for the party could be 900 euros. I live in Oslo.", "assistant")
    for question in ("What about the party budget?", "Where do I live?"):
        assert "900" not in reply(question, ["Hello", other]) and "Oslo" not in reply(question, ["Hello", other])
    summary, facts = digest(["Where do I live?", message(2, reply("Where do I live?", ADA), "assistant"), other])
    assert not facts and summary == Sections(topic="Where do I live?")


# -- replies


TALK = """
hi | Hello! ;; ok cool | All right. ;; 谢谢！ | 不客气 ;; 你是谁？ | 我是 Recap 的内置模型
I'm Ada. What's your name? | Noted: name Ada.
Write me a poem about cats | I am Recap's built-in model
Translate into French: I live in Rome. | I am Recap's built-in model
我叫小明，住在上海。 | 记下了：叫小明；住在上海。
I don't want to fly, it's too stressful. | Noted: ruled out: to fly. ;; No PHP, please. | Noted: ruled out: PHP.
The sky looks odd this evening | I keep that word for word, but I made no fact of it.
What's the capital of Peru? | I find nothing here that you have told me.
My name is Ada and I live in Tallinn. I'm allergic to nuts. | Noted: name Ada; lives in Tallinn; allergic to nuts.
"""


@pytest.mark.parametrize(("said", "expected"), [row.split(" | ") for row in re.split(" ;; |\n", TALK.strip())])
def test_acknowledges_greets_and_says_what_is_beyond_it(said, expected):
    assert reply("").startswith("I did not find any words")
    assert reply(said).startswith(expected)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_a_summary_keeps_what_each_section_has(section):
    kept = {"line": "Twelve chairs", "items": ("Twelve chairs",), "options": (Excluded("Twelve chairs", "too many"),)}
    sections, _ = digest(["We also need a table."], Sections(**{section.name: kept[section.kind]}))
    assert kept[section.kind] == getattr(sections, section.name)[: len(kept[section.kind])]


def test_lists_what_it_knows_and_what_the_summary_holds():
    said = [
        "My name is Ada and I live in Tallinn.",
        "We moved: I live in Lyon now.",
        "I don't want to fly, it's too stressful.",
    ]
    assert reply("What do you know about me?", said) == (
        "From what you have told me:\n- Name: Ada\n- Lives in Lyon\n\nRuled out:\n- to fly: it's too stressful"
    )
    summary = Sections(topic="Garden", data=("The fence is 12 m long",), excluded=(Excluded("plastic", "ugly"),))
    assert "The fence is 12 m long" in reply("How long is the fence?", summary=summary)
    assert "Topic: Garden" in reply("Summarize our conversation", summary=summary)
    assert reply("What have I ruled out?", summary=summary).endswith("Ruled out:\n- plastic: ugly")
    recalled = Excerpt("old", "", (message(1, "I finished the fence."), message(2, "Nice!", "assistant")), (1,), 1.0)
    assert quotations(reply("What did I tell you yesterday?", excerpts=[recalled])) == ["I finished the fence."]


# -- whatever is said

ODD = [
    "",
    "\x00",
    "\ud800 I live in \udfff Rome.",
    "😀😀",
    "I live in Rome.\u2028My name is Ada.",
    "{quote}: {0} %s",
    '"""',
    "Not {old}, {new}",
]
SAID = st.sampled_from([*ADA, *chat_of(MOVE), "We need 40 chairs.", "No PHP, please.", "hi", *ODD]) | st.text(
    st.characters(codec=None), max_size=200
)
MESSAGES = st.lists(st.tuples(SAID, st.sampled_from(["user", "assistant", "system", "tool"])), max_size=5)


@pytest.mark.parametrize("day", ["9999-99-99", "2026-02-30", "2026-00-10", "----------"])
def test_a_pasted_block_may_have_any_day(day):
    chat = f'<chat updated_at="{day}">\n09:30 user: My locker code is 7319.\n</chat>'
    pasted = f'<memory now="{day}">\n{chat}\n</memory>\n\nWhat is my locker code?'
    text, _ = complete(MODEL, ModelRequest((ChatMessage("user", pasted),)))
    assert "7319" in text


@settings(deadline=None, max_examples=40)
@given(MESSAGES, st.lists(SAID, max_size=3), st.lists(SAID, max_size=3), SAID)
def test_every_message_is_digested_and_answered(drawn, items, known, question):
    messages = [message(n, text, role) for n, (text, role) in enumerate(drawn, 1)]
    facts = [fact(n, text, text) for n, text in enumerate(known, 1)]
    previous = Sections(topic=" ".join(items), data=tuple(items), excluded=tuple(Excluded(text) for text in items))
    text, _ = complete(MODEL, request(messages, previous, facts))
    text.encode()
    said = {one.position: one for one in messages}
    for one in json.loads(text)["facts"]:
        assert one["quote"] and one["quote"] in said[one["source"]].content and one["text"].strip()
        assert said[one["source"]].role == "user" and one["category"] in FACT_CATEGORIES
    asked = prompt(question, messages, facts, summary=previous)
    answered, _ = complete(MODEL, asked)
    answered.encode()
    assert answered and complete(MODEL, replace(asked, stream=True))[0] == answered


TIES = """
My sister Ida lives in Porto. | user sister Ida | Ida lives in Porto
My brother's name is Tom. | user brother Tom
I have a younger sister called Una. | user younger sister Una
My boss lives in Lyon. | user's boss lives in Lyon
I live in Tallinn and I work at Acme. | user lives in Tallinn | user works at Acme
I live in Bristol, at 17 Marlow Road. | user lives in Bristol
I'm originally from Bergen. | user comes from Bergen
我姐姐叫小红。我住在上海。 | user 姐姐 小红 | user 住在 上海
I like tea. My sister is a doctor.
"""


@pytest.mark.parametrize("row", TIES.strip().splitlines())
def test_ties_people_and_places_together(row):
    said, *expected = row.split(" | ")
    found = [one for drafted in digest([said])[1] for one in drafted["links"]]
    assert [f"{one['subject']} {one['relation']} {one['object']}" for one in found] == expected
