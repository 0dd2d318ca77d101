"""The built-in model behind the API: questions about three chats, and corrections that hold."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import services_of
from tests.resources import good, read_all
from tests.talking import chat

# What was said; a question and the words that answer; a correction, a question, the words that answer and words that
# would be stale.

CHATS = {
    "[BAKERY]": """
Hi, I'm Tomás and I'm opening a small bakery in Ghent with my brother Rui.
The shop is on Brugstraat. It has 62 square metres, and the rent is 1,450 euros a month.
We open on Saturday 12 September. The oven arrives a week earlier, on the 4th.
Our flour supplier is Molens Van Hove, they deliver every Tuesday and Friday.
I can't stand working with margarine, so everything is made with butter.
We borrowed 40,000 euros from the bank, over seven years.
The inspector is called Mrs. De Smet. She visits on 28 August at 10 am.
We'll bake 300 loaves a day to begin with. That needs two people from 3 in the morning.
Our accountant thinks we should lease a van. Yes, that makes sense: a used Renault Kangoo.
For the till we're going with SumUp because it has no monthly fee.
My daughter Inês is six and she's allergic to sesame, so no sesame rolls.
""",
    "[THESIS]": """
I'm writing my master's thesis about river plastics at the University of Leiden.
My supervisor is Dr. Anouk Visser. We meet every Monday at 14:00 in her office.
The first draft is due on 3 May and the defence is on 21 June.
I collected 48 samples along the Rhine last summer.
I use R for the statistics, and LaTeX to write it.
The lab costs me 35 euros per sample. The faculty pays half of that.
My second reader will be Professor Okafor from Delft.
I share a flat with my friend Jonas, who studies medicine.
I take a train to Delft every Thursday. It takes 14 minutes.
The limit is 25,000 words, appendix not included.
I was thinking about a PhD, but I'd rather not stay in academia.
""",
    "[RUNNING]": """
Hey! I signed up for the Valencia marathon on 6 December.
My goal is to finish under 3:45. Last year in Porto I needed 4:02.
My coach is called Marieke, she sends me a plan every Sunday evening.
I run four times a week. The long run is on Saturday, 24 km at the moment.
I have asthma, so I always carry an inhaler.
My knee hurt in spring. The physio said it was the left meniscus.
I wear Saucony shoes, size 42.
I booked a room at Hotel Turia for three nights. It's 95 euros a night.
My wife Petra comes with me and our son Emil stays with his grandmother.
I usually eat oatmeal with banana before a race.
We fly out on Friday 4 December at 7:15 from Eindhoven.
""",
}
QUESTIONS = """
[BAKERY]
What is my brother called? | Rui ;; How much is the rent? | 1,450 ;; How big is the shop? | 62
When do we open? | 12 September ;; Who supplies our flour? | Van Hove ;; When does the inspector come? | 28 August
How many loaves will we bake? | 300
Which street is the shop on? | Brugstraat ;; When does the oven arrive? | 4th
On which days is the flour delivered? | Tuesday and Friday ;; How much did we borrow from the bank? | 40,000
Which till system are we using? | SumUp ;; What is Inês allergic to? | sesame
What kind of van should we lease? | Kangoo
[THESIS]
Who is my supervisor? | Visser ;; When is the draft due? | 3 May ;; What is my thesis about? | river plastics
How many samples did I collect? | 48 ;; Which program do I use for statistics? | R for the statistics
How long is the train to Delft? | 14 minutes
When is my defence? | 21 June ;; How much does the lab cost per sample? | 35 euros ;; Who is my second reader? | Okafor
What does Jonas study? | medicine ;; When do I go to Delft? | Thursday ;; What's the word limit? | 25,000
[RUNNING]
When is the marathon? | 6 December ;; What time do I want to finish in? | 3:45 ;; Who is my coach? | Marieke
What shoes do I wear? | Saucony ;; How much is the hotel? | 95 ;; Who looks after Emil? | grandmother
What do I eat before a race? | oatmeal
What was my time in Porto? | 4:02 ;; How far is my long run? | 24 km ;; Which part of my knee was hurt? | meniscus
Do I have any health problems? | asthma ;; Where am I staying in Valencia? | Turia
When do we fly? | 4 December ;; Who comes with me? | Petra
"""
CORRECTIONS = """
[BAKERY]
Actually, the opening slipped: we open on 26 September. | When do we open? | 26 September | 12 September
No wait, the inspector comes at 2 pm, not at 10. | When does the inspector visit? | 2 pm | 10 am
The landlord changed the rent to 1,520 euros. | How much is the rent? | 1,520 | 1,450
Not 300 loaves but 240, the oven is too small. | How many loaves a day? | 240 | 300 loaves a day
Rui can't make Tuesdays, so flour now comes on Wednesday and Saturday. | When does flour come? | Wednesday | Tuesday and
We pushed the oven back to the 18th. | When does the oven arrive? | 18th | the 4th
It's not 62 square metres but 58, I measured again. | How big is the shop? | 58 | has 62
Sorry, the loan is 45,000 euros. | How much did we borrow? | 45,000 | 40,000
[THESIS]
My meeting with Anouk moved to Wednesday at 9:30. | When do I meet my supervisor? | Wednesday at 9:30 | Monday
The draft deadline was pushed to 17 May. | When is the draft due? | 17 May | 3 May
I switched from R to Python for the statistics. | What do I use for statistics? | Python | I use R
Wait, the defence is on 28 June. | When is my defence? | 28 June | 21 June
My second reader changed: it's Dr. Lindqvist now. | Who is my second reader? | Lindqvist | Okafor
Actually I collected 52 samples, four were in a second box. | How many samples did I collect? | 52 | 48
[RUNNING]
Actually I changed my goal: under 3:55. | What's my goal for the marathon? | 3:55 | 3:45
I sold the Sauconys and bought Hokas. | What shoes do I wear? | Hoka | I wear Saucony
We changed the hotel, we're at Casa Sorolla now. | Which hotel are we at? | Sorolla | Turia
No, my coach is called Marijke, I misspelled it. | Who is my coach? | Marijke | Marieke
The flight was moved to Saturday 5 December at 9:40. | When do we fly? | 5 December | 4 December
My long run is up to 28 km now. | How far is my long run? | 28 | 24 km
"""
RIGHT = {"questions": 36, "corrections": 18}  # of 40 and 20


def say(client: FlaskClient, words: str, session: str = "s", user: str = "ada", **more: Any) -> str:
    """The reply to what the person says, when all jobs that follow are done."""
    reply = str(chat(client, words, session_id=session, user_id=user, **more)["reply"])
    services_of(client.application).outbox.run_due()
    return reply


def ask(client: FlaskClient, question: str, session: str = "s", user: str = "ada") -> str:
    return say(client, question, session, user, temporary=True)


def rows(table: str, name: str) -> list[list[str]]:
    """The rows of a table that are about one chat."""
    lines = table.partition(name)[2].partition("\n[")[0].strip().splitlines()
    return [row.split(" | ") for line in lines for row in line.split(" ;; ")]


def test_questions_and_corrections_over_three_chats(client: FlaskClient) -> None:
    right, stale, wrong = {"questions": 0, "corrections": 0}, list[str](), list[str]()
    for name, said in CHATS.items():
        for words in said.strip().splitlines():
            say(client, words, name, name)
        for question, expected in rows(QUESTIONS, name):
            answer = ask(client, question, name, name)
            right["questions"] += expected in answer
            wrong += [] if expected in answer else [f"{question} {answer}"]
        for correction, question, expected, old in rows(CORRECTIONS, name):
            say(client, correction, name, name)
            answer = ask(client, question, name, name)
            right["corrections"] += expected in answer and old not in answer
            stale += [f"{question} {answer}"] if old in answer else []
    assert not stale
    assert all(right[kind] >= least for kind, least in RIGHT.items()), "\n".join([str(right), *wrong])


DATES = "Actually, we changed the dates: 10 to 24 April."


def test_what_the_person_edited_and_pinned_is_answered(client: FlaskClient) -> None:
    say(client, "We're going to Japan from 3 to 17 April.")
    say(client, DATES)
    question = "When are we going to Japan?"
    assert "10 to 24 April" in ask(client, question) and "3 to 17" not in ask(client, question)
    (fact,) = read_all(client, "/api/facts", user_id="ada")
    edited = {"text": "Going to Japan from 12 to 26 April", "pinned": True}
    say(client, "Hello!", "another")
    good(client.patch(f"/api/facts/{fact['id']}?user_id=ada", json=edited))
    for session in ("s", "another"):
        answer = ask(client, question, session)
        assert "12 to 26 April" in answer and "10 to 24" not in answer and "3 to 17" not in answer
    say(client, "No wait, it's 14 to 28 April.")
    assert "14 to 28 April" in ask(client, question) and "12 to 26" not in ask(client, question)


def test_a_first_message_replaces_nothing_and_the_same_message_again_neither(client: FlaskClient) -> None:
    said = "I live in Rome. Actually, I moved to Lyon. No wait, the dentist is Tuesday at 11."
    first = say(client, said)
    assert "replaces" not in first and "ruled out" not in first
    assert "replaces" not in say(client, said, "another")


REFERRING = """
I saw a red Brompton. Yes, that one is the bike I want. | Which bike do I want? | a red Brompton. Yes, that one
We take a ferry on Thursday. It leaves at 7. | When does the ferry leave? | ferry on Thursday. It leaves at 7
The hall is booked. The oven comes on the 4th. | When does the oven come? | : "The oven comes on the 4th."
"""


@pytest.mark.parametrize(("said", "question", "expected"), [row.split(" | ") for row in REFERRING.strip().splitlines()])
def test_a_sentence_that_refers_is_quoted_with_its_neighbour(
    client: FlaskClient, said: str, question: str, expected: str
) -> None:
    say(client, said)
    assert expected in ask(client, question)
