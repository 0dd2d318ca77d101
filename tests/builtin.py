"""Calls of the built-in model as the tests make them: a reply or a digest of what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.knowledge.summary_update import SummaryInput, summary_request
from memory.llm import ChatMessage, ModelRequest, complete
from memory.llm.builtin import BuiltinModel
from memory.quoting import block, excerpt_block, fact_line, format_time, summary_block, to_prompt_message
from models.facts import Fact
from models.messages import Excerpt, Message
from models.sections import Sections

MODEL = BuiltinModel()
START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
ADA = ["My name is Ada and I live in Tallinn. I'm allergic to peanuts.", "I work as a nurse. I have a dog named Rex."]


# Three chats: what was said; a question and the words that answer; a correction, a question, the words that answer and
# words that would be stale.

MOVE = """
Hi! My name is Nora and I live in Graz. / I work as a paramedic at the Red Cross. / I'm allergic to penicillin.
We have two kids and a dog named Bruno. / My sister Lena lives in Vienna. / My budget for the flat is 900 euros.
The viewing is on Monday at 9. / I hate long commutes, and I love old buildings. / My landlord is Mr. Huber.
We have to be out of the old flat by 30 June. / I play the cello. / I drive a Golf. / My birthday is on 4 May.
"""
APP = """
I'm building a booking app for a yoga studio. / The deadline is 12 March. / The budget is 8,000 euros.
Let's use Postgres for the database. / No PHP, please. / We need support for 200 members.
The kickoff is on Tuesday at 10 am. / My client is called Marta Silva.
I don't want Kubernetes because it's too complex. / We decided to launch in Lisbon first.
The server costs 40 euros a month. / Our designer is Tom. / I prefer tabs instead of spaces.
"""
TRIP = """
We're flying to Japan from 3 to 17 April. / My wife is Ana and she is vegan. / I'm vegetarian.
We will stay at a ryokan in Kyoto. It costs 140 euros a night. / The dentist is on Wednesday at 3 pm.
I'm learning Japanese. / I've been playing the guitar for six years. / My favourite dish is ramen.
I joined a hiking club last month. / I grew up in Porto. / I have asthma. / My passport number ends in 771.
I'm thinking about buying a camera. / My flight number is TP 551.
"""
QUESTIONS = """
[MOVE]
What's my name? | Nora ;; Where do I live? | Graz ;; What do I do for a living? | paramedic
What am I allergic to? | penicillin ;; What is my dog called? | Bruno ;; How many kids do I have? | two kids
Where does my sister live? | Vienna ;; Where does Lena live? | Vienna ;; What's my budget? | 900 euros
When is the viewing? | Monday at 9 ;; What do I hate? | commutes ;; Who is my landlord? | Huber
When do we have to leave the old flat? | 30 June ;; Which instrument do I play? | cello
What car do I drive? | Golf ;; When is my birthday? | 4 May
[APP]
What am I building? | booking app ;; When is the deadline? | 12 March ;; How much can we spend? | 8,000
What database do we use? | Postgres ;; What did I rule out? | Kubernetes
How many members do we need to support? | 200 ;; When is the kickoff? | Tuesday at 10 am
What is my client's name? | Marta Silva ;; Where do we launch first? | Lisbon
How much does the server cost? | 40 euros ;; Who is our designer? | Tom ;; Do I prefer tabs or spaces? | tabs
[TRIP]
When are we flying to Japan? | 3 to 17 April ;; Who is my wife? | Ana ;; Can I eat meat? | egetarian
How much is the ryokan? | 140 euros ;; When is my dentist appointment? | Wednesday at 3 pm
Which language am I learning? | Japanese ;; How long have I been playing the guitar? | six years
What's my favourite dish? | ramen ;; Which club did I join? | hiking ;; Where did I grow up? | Porto
What does my passport number end in? | 771 ;; What's my flight number? | TP 551
"""
CORRECTIONS = """
[MOVE]
Actually, I moved to Linz. | Where do I live? | Linz | Graz
No wait, the viewing is Tuesday at 11. | When is the viewing? | Tuesday at 11 | Monday
Let's raise the budget to 1,100 euros. | What's my budget? | 1,100 | 900
I sold the Golf and bought a Tesla. | What did I buy? | Tesla | "I drive a Golf
My name is not Nora but Nola. | What's my name? | Nola | "Hi! My name is Nora
My landlord is now Mrs. Egger. | Who is my landlord? | Egger | Huber
Sorry, my birthday is on 5 May. | When is my birthday? | 5 May | 4 May
I quit, now I work as a teacher. | What do I do for a living? | teacher | paramedic
[APP]
The deadline moved to 26 March. | When is the deadline? | 26 March | 12 March
Not 8,000, make it 9,500 euros. | What is the budget? | 9,500 | "The budget is 8,000
Let's use SQLite for the database. | What database do we use? | SQLite | Postgres
PHP is fine after all. | What did I rule out? | Kubernetes | PHP
The kickoff was pushed to Thursday. | When is the kickoff? | Thursday | Tuesday
Our designer is Tina, not Tom. | Who is our designer? | Tina | "Our designer is Tom.
The server costs 55 euros now. | How much does the server cost? | 55 euros | 40 euros
[TRIP]
The dentist was rescheduled to Friday at 2 pm. | When is the dentist? | Friday at 2 pm | Wednesday
My flight number changed to TP 553. | What's my flight number? | 553 | 551
My favourite dish is udon now. | What's my favourite dish? | udon | ramen
"""


def chat_of(text: str) -> list[str]:
    return [said.strip() for said in text.strip().replace("\n", " / ").split(" / ")]


def cases(table: str) -> list[tuple[Any, ...]]:
    """Rows of a table, each with the chat it is about."""
    chats = {"[MOVE]": chat_of(MOVE), "[APP]": chat_of(APP), "[TRIP]": chat_of(TRIP)}
    found, chat = list[tuple[Any, ...]](), list[str]()
    for line in table.strip().splitlines():
        chat = chats.get(line, chat)
        found += [(chat, *row.split(" | ")) for row in line.split(" ;; ") if line not in chats]
    return found


def message(position: int, content: str, role: str = "user", name: str | None = None) -> Message:
    return Message(position, "s", position, role, content, START + timedelta(days=position - 1), 1, name)


def fact(number: int, text: str, quote: str, day: int = 0, category: str = "identity") -> Fact:
    at = START + timedelta(days=day)
    return Fact(number, text, at, at, category, 4, "user", "s", 1, quote)


def prompt(
    question: str,
    tail: Sequence[str | Message] = (),
    facts: Sequence[Fact] = (),
    excerpts: Sequence[Excerpt] = (),
    summary: Sections | None = None,
) -> ModelRequest:
    """Return the request of a turn, as Recap composes it."""
    messages = [message(n, said) if isinstance(said, str) else said for n, said in enumerate(tail, 1)]
    system = "\n\n".join(filter(None, ["Be brief.", summary_block(summary or Sections())]))
    body = "\n".join([*map(excerpt_block, excerpts), block("facts", map(fact_line, facts))])
    memory = f'<memory now="{format_time(START)} UTC, Friday">\n{body}\n</memory>'
    spoken = [ChatMessage(*to_prompt_message(one)) for one in messages]
    return ModelRequest((ChatMessage("system", system), *spoken, ChatMessage("user", f"{memory}\n\n{question}")))


def reply(question: str, *shown: Any, **more: Any) -> str:
    return complete(MODEL, prompt(question, *shown, **more))[0]


def request(
    said: Sequence[str | Message], previous: Sections | None = None, known: Sequence[Fact] = ()
) -> ModelRequest:
    messages = [message(n, text) if isinstance(text, str) else text for n, text in enumerate(said, 1)]
    return summary_request("Summarise.", SummaryInput(previous or Sections(), messages, known, links=True))


def digest(
    said: Sequence[str | Message], previous: Sections | None = None, known: Sequence[Fact] = ()
) -> tuple[Sections, list[dict[str, Any]]]:
    text, _ = complete(MODEL, request(said, previous, known))
    data = json.loads(text)
    assert list(data) == ["summary", "facts"]
    return Sections.from_dict(data["summary"]), data["facts"]


def texts(facts: list[dict[str, Any]]) -> list[str]:
    return [entry["text"] for entry in facts]


def quotations(text: str) -> list[str]:
    return re.findall(r'"([^"]*)"', text) + re.findall(r"“([^”]*)”", text)
