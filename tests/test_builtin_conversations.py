"""The built-in model behind the API: what was said is answered, there and in a later chat, and corrections hold."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from tests.http import chat, read_all


def say(client: FlaskClient, words: str, session: str | None = "s", **more: Any) -> str:
    """The reply to what the person says, when all jobs that follow are done."""
    named = {"session_id": session} if session else {}
    reply = str(chat(client, words, user_id="ada", **named, **more)["reply"])
    engine_of(client.application).job_queue.run_due()
    return reply


def ask(client: FlaskClient, question: str, session: str | None = "s") -> str:
    """What is answered in a chat, or in a new one; the question is not stored."""
    return say(client, question, session, temporary=True)


# Messages as people write them, some with words of the reply; then all that is known of the person.

TOMASZ = """
hey there
im Tomasz, living in Gdansk with my girlfriend Kasia
i work at a small bakery, mostly night shifts
whats my name | im Tomasz
im allergic to walnuts btw
we're thinking about getting a dog next spring
our budget for the kitchen is 4000 euro
sorry i meant 4500 euro | Noted: budget 4500 euro
what was the budget again | 4500 euro
Can you recommend a good pizza recipe? | beyond me
my sister Ola is getting married on 12 june in Krakow
when is the wedding | 12 june
i dont work at the bakery anymore
where do i work | anymore
I've started as a barista at Coffee Point last week
what do you know about me
pls don't remember that I told you about the wedding | can't tell which fact
remember that the wifi password is tulip-44
what is the wifi password | tulip-44
my cat Bruno died yesterday :( | no fact
do i have a cat | died
i hate mondays lol
what can you do | built-in model
forget that im allergic to walnuts | I forget the fact
Where do i live | Gdansk
thanks, see you tomorrow | welcome
= Budget: 4500 euro | Dislikes mondays | Lives in Gdansk | Name: Tomasz | Wifi password: tulip-44
= Works as a barista at Coffee Point
"""

RUTH = """
hallo, ich heiße Ruth und wohne in Kiel
wo wohne ich | Kiel
merk dir bitte dass mein Bruder am 4. Juli heiratet | am 4. Juli heiratet
wann heiratet mein bruder | 4. Juli
où est-ce que j'habite ? | Tu m'as dit : « hallo, ich heiße Ruth und wohne in Kiel »
danke dir, bis morgen! | Gern geschehen
i cant eat shellfish | doesn't eat shellfish
my supervisor is Prof. Lindqvist | supervisor Prof. Lindqvist
whos my supervisor | Prof. Lindqvist
our budget is 4000 euros for the two of us
sorry i meant 4500 | budget 4500
pls never use emojis again | proposed as an instruction
my haircut is on thursday at 9:30
they moved it to friday at 11 | haircut friday at 11
meine Tochter geht in die 3. Klasse
in welche klasse geht meine tochter | in die 3. Klasse
wer bist du | das eingebaute Modell
= Budget: 4500 | Doesn't eat shellfish | Haircut: friday at 11 | Mein Bruder am 4. Juli heiratet
= Name: Ruth | Supervisor: Prof. Lindqvist | Wohnt in Kiel
"""

DATES = "Actually, we changed the dates: 10 to 24 April."


@pytest.mark.parametrize("talk", [TOMASZ, RUTH], ids=["tomasz", "ruth"])
def test_no_fact_is_garbled_or_stale_and_replies_make_sense(client, talk):
    said, _, facts = talk.strip().partition("\n= ")
    rows = [row.partition(" | ") for row in said.splitlines()]
    replies = [(expected, say(client, words)) for words, _, expected in rows]
    assert [(expected, reply) for expected, reply in replies if expected not in reply] == []
    known = sorted(one["text"] for one in read_all(client, "/api/facts", user_id="ada"))
    assert known == facts.replace("\n= ", " | ").split(" | ")


def test_a_change_that_is_not_understood_is_told_with_the_answer(client):
    say(client, "We're going to Japan from 3 to 17 April.")
    assert "can't tell what it changes" in say(client, DATES)
    assert ask(client, "When are we going to Japan?").endswith(f'After that you said: "{DATES}"')


REFERRING = """
I saw a red Brompton. Yes, that one is the bike I want. | Which bike do I want? | a red Brompton. Yes, that one
We take a ferry on Thursday. It leaves at 7. | When does the ferry leave? | ferry on Thursday. It leaves at 7
"""


def test_a_sentence_that_refers_is_quoted_with_its_neighbour(client):
    for number, row in enumerate(REFERRING.strip().splitlines()):
        said, question, expected = row.split(" | ")
        say(client, said, f"s{number}")
        assert expected in ask(client, question, f"s{number}")


IN_OTHER_LANGUAGES = """
Ich wohne in Kiel und meine Katze heißt Miso. | Notiert: wohnt in Kiel; Katze: Miso.
    Wo wohne ich? | Aus dem, was du mir gesagt hast: - Wohnt in Kiel (
Ich habe einen Kater. | Notiert: hat einen Kater.
    Was habe ich? | Dazu finde ich nichts in dem, was du mir gesagt hast.
J'habite à Lyon et mon budget est de 900 euros. | Noté : habite à Lyon ; budget 900 euros.
    Où est-ce que j'habite ? | De ce que tu m'as dit : - Habite à Lyon (
Mieszkam w Krakowie i mam uczulenie na orzechy. | Zanotowane: mieszka w Krakowie; uczulenie orzechy.
    Gdzie mieszkam? | Wiem to z twoich słów: - Mieszka w Krakowie (
Я живу в Казани, и у меня аллергия на орехи. | Записано: живёт в Казани; аллергия на орехи.
    Где я живу? | Из того, что ты мне рассказывал(а): - Живёт в Казани (
大阪に住んでいます。 | メモしました：大阪に住んでいる。
    どこに住んでいますか？ | 教えてもらったこと： - 大阪に住んでいる (
"""


@pytest.mark.parametrize(
    ("said", "noted", "question", "told"),
    [row.split(" | ") for row in IN_OTHER_LANGUAGES.replace("\n    ", " | ").strip().splitlines()],
)
def test_facts_are_noted_and_told_in_the_language_of_the_message(client, said, noted, question, told):
    assert say(client, said) == noted
    assert told in ask(client, question, None).replace("\n", " ")
