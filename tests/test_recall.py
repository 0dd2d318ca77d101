"""Recall in a turn: when a message looks back, which times it means, and how much of the past enters the prompt."""

import random
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from app import engine_of
from memory import tokens
from memory.recall.excerpts import load_windows
from memory.recall.recall import prepare_recall
from memory.sessions.messages import append as append_messages
from memory.sessions.messages import find as find_message
from models.messages import MessageDraft
from models.owners import Caller
from tests.http import append, ask, chat, error, find, good, said
from tests.model_server import ToolCalls, prompts
from tests.recall import BARE, blocks, last, reason, recalled, talker, words

CODE = "My locker code is 7319."
NOISE = "Good morning, thanks, ok cool, see you tomorrow, lol."
KETTLE = "The kettle in the kitchen leaks."
HOUR = timedelta(hours=1)


def on(moment: datetime, content: str, **more: Any) -> dict[str, Any]:
    """A message said at that moment."""
    return said(content, created_at=moment.isoformat(), **more)


def day(month: int, number: int, hour: int = 12, minute: int = 0) -> datetime:
    return datetime(2024, month, number, hour, minute, tzinfo=UTC)


@pytest.fixture
def start(make_app, model_server, monkeypatch):
    """Starts the application with these settings."""
    return partial(talker, make_app, model_server, monkeypatch)


@pytest.fixture
def client(start):
    """Ada has said two things, weeks ago."""
    client = start()
    append(client, "old", [on(day(3, 1), CODE)], user_id="ada")
    append(client, "noise", [on(day(3, 2), NOISE)], user_id="ada")
    return client


# -- when a turn looks back


def test_what_looks_back_recalls_and_says_why(client, model_server):
    for message, why in (
        ("What did I tell you about the locker?", 'refers to the past ("What did I tell")'),
        ("You suggested a locker.", 'points at what was said before ("You suggested")'),
        ("The locker is jammed.", "has words worth looking for: locker, jammed"),
        ("我的locker密码是多少？", "我的"),
    ):
        answer = chat(client, message, user_id="ada", temporary=True)
        assert recalled(answer) == [[CODE]]
        assert answer["memory"]["recall"]["mode"] == "auto"
        assert why in reason(answer) and "nothing earlier" not in reason(answer)
        assert CODE in last(model_server)


def test_small_talk_recalls_nothing_and_says_nothing_of_it_to_the_model(client, model_server):
    append(client, "yesterday", [on(day(5, 14), "Trams squeal.")], user_id="ada")
    for message in ("good morning!", "Thanks a lot", "ok, cool", "lol", "Thanks for yesterday!", "早上好！"):
        answer = chat(client, message, user_id="ada", temporary=True)
        assert answer["memory"]["excerpts"] == [] and reason(answer) == "small talk"
        assert last(model_server) == BARE + message
    always = chat(client, "Thanks, good morning", user_id="ada", temporary=True, recall="always")
    assert [NOISE] in recalled(always)  # it was there to be found


FOUND: dict[str, tuple[list[list[str]], list[list[str]]]] = {  # by a question, and by small talk
    "auto": ([[CODE]], []),
    "always": ([[CODE]], [[NOISE]]),
    "off": ([], []),
}


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("setting", FOUND)
def test_the_setting_says_when_and_a_request_overrides_it(start, model_server, setting):
    client = start(recall=setting)
    for asked in (None, "always", "off"):
        mode = asked or setting
        for message, expected in zip(("Which locker was it?", "Thanks, good morning"), FOUND[mode], strict=True):
            answer = chat(client, message, user_id="ada", temporary=True, recall=asked)
            assert (recalled(answer), answer["memory"]["recall"]["mode"]) == (expected, mode)
            assert (reason(answer) == "recall is off") is (mode == "off")
            assert ("<chat " in last(model_server)) is bool(expected)


# -- times


@pytest.fixture
def diary(start):
    """Ada's two sessions, with something said on several days; no two share a word."""
    client = start()
    one = [on(day(3, 4), "Violins need rosin."), on(day(5, 13, 23, 59), "Owls hunt at dusk.")]
    append(client, "one", [*one, on(day(5, 14, 0, 0), "Basil wants sun.")], user_id="ada")
    two = [on(day(5, 14, 23, 30), "Glaciers calve."), on(day(5, 15, 0, 0), "Trams squeal.")]
    append(client, "two", two, user_id="ada")
    return client


def test_days_begin_where_the_person_lives(diary):
    for zone, today, yesterday in [
        ("UTC", {"Trams squeal."}, {"Basil wants sun.", "Glaciers calve."}),
        ("Europe/Tallinn", {"Glaciers calve.", "Trams squeal."}, {"Owls hunt at dusk.", "Basil wants sun."}),
        ("America/Los_Angeles", set(), {"Glaciers calve.", "Trams squeal."}),
    ]:
        for message, expected in (("What did we say today?", today), ("What did we say yesterday?", yesterday)):
            assert words(chat(diary, message, user_id="ada", temporary=True, timezone=zone)) == expected


def test_an_unknown_time_zone_is_told(client):
    nowhere = ("Europe/Atlantis", "Europe", "../etc/passwd", "/etc/localtime", "x" * 5000)
    query = {"q": "tea", "user_id": "ada", "timezone": "Europe/Atlantis"}
    answers = [client.get("/api/search", query_string=query), *(ask(client, "hello", timezone=one) for one in nowhere)]
    for answer in answers:
        (sentence,) = error(answer, 422)["fields"]["timezone"]
        assert sentence.startswith("There is no time zone called") and "use a name like" in sentence


@pytest.fixture
def kettles(start):
    """The same words last week and in April."""
    client = start()
    for session, moment in (("week", day(5, 8)), ("april", day(4, 20))):
        append(client, session, [on(moment, KETTLE)], user_id="ada")
    return client


def test_a_time_beside_a_topic_is_preferred_and_the_rest_still_found(kettles):
    for phrase, first, second in (("last week", "week", "april"), ("in April", "april", "week")):
        answer = chat(kettles, f"What was wrong with the kettle {phrase}?", user_id="ada", temporary=True)
        best, other = answer["memory"]["excerpts"]
        assert (best["session_id"], other["session_id"]) == (first, second)
        assert best["why"]["time"] > other["why"]["time"] == 0
        assert f'speaks of "{phrase}"' in reason(answer)


def test_a_month_brings_what_was_said_of_it_where_nothing_was_said_then(diary):
    trip = "Our trip to Japan is in April."
    append(diary, "plans", [on(day(5, 10), trip)], user_id="ada")
    for question, expected in (
        ("Where are we going in April?", {trip}),
        ("What did I say about April?", {trip}),
        ("Where are we going next April?", {trip}),
        ("What did I do in March?", {"Violins need rosin."}),
        ("What did we talk about in April?", set()),
        ("See you in April!", set()),
    ):
        assert words(chat(diary, question, user_id="ada", temporary=True)) == expected, question


# -- how much of the past


def test_the_prompt_shows_excerpts_by_their_time_and_the_reply_lists_the_best_first(client, model_server):
    append(client, "later", [on(day(3, 9), "The fitters come on 12 May.")], user_id="ada")
    append(client, "first", [on(day(3, 5), "The kitchen fitters come on 3 May.")], user_id="ada")
    append(client, "last", [on(day(3, 14), "The kitchen fitters come on 14 May.")], user_id="ada")
    answer = chat(client, "When do the kitchen fitters come?", temporary=True, user_id="ada")
    assert recalled(answer)[-1] == ["The fitters come on 12 May."]
    assert [re.search("on (.*) May", block)[1] for block in blocks(model_server)] == ["3", "12", "14"]


def talk(count: int, about: dict[int, str]) -> list[dict[str, Any]]:
    """A conversation of `count` messages about nothing, but for those `about` something, by position."""
    roles = ("user", "assistant")
    return [
        on(day(3, 1) + number * HOUR, about.get(number, f"Filler {number} says little."), role=roles[1 - number % 2])
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize(("window", "shown"), [(0, [4, 6, 11]), (1, [3, 4, 5, 6, 7, 10, 11, 12])])
def test_windows_around_what_was_found_merge_where_they_meet(start, model_server, window, shown):
    client = start(recall_window=window, recall_limit=3)
    about = {4: "The zeppelin is silver.", 6: "The zeppelin is loud.", 11: "The zeppelin landed."}
    ids = append(client, "old", talk(12, about), user_id="ada")["message_ids"]
    (excerpt,) = chat(client, "Tell me about the zeppelin", user_id="ada")["memory"]["excerpts"]
    assert [message["position"] for message in excerpt["messages"]] == shown
    assert set(excerpt["hits"]) == {ids[3], ids[5], ids[10]}
    block = prompts(model_server)[-1][-1]["content"]
    gaps = sum(after > before + 1 for before, after in pairwise(shown))
    assert block.count("\n...\n") == gaps  # what is left out shows
    assert len(blocks(model_server)) == 1


def test_what_the_tail_shows_is_never_recalled(start, model_server):
    """Whatever has folded into the summary can be recalled from the same session; nothing is shown twice."""
    changes = {"summary_mode": "inline", "tail_messages_max": 4, "recall_window": 3, "recall": "always"}
    client = start(**changes)
    model_server.main.default = lambda body: "Noted."
    folded = 0
    for number in range(12):
        answer = chat(client, f"The zeppelin number {number} flies.", session_id="s")
        tail = answer["memory"]["tail"]["messages"]
        messages = [message for excerpt in answer["memory"]["excerpts"] for message in excerpt["messages"]]
        assert all(message["position"] <= 2 * number - tail for message in messages)
        folded += bool(messages)
        shown = str(prompts(model_server)[-1][1:])
        assert all(shown.count(f"zeppelin number {n} flies") <= 1 for n in range(number + 1))
    assert folded > 5


def test_long_messages_are_clipped_and_the_api_shows_what_the_model_saw(start, model_server):
    client = start(recall_window=1, recall_limit=1)
    long = "The zeppelin is silver. " + "And so it went on and on. " * 200
    append(client, "old", [said("Before. " * 500), said(long), said("After.")], user_id="ada")
    ((before, hit, after),) = recalled(chat(client, "Which zeppelin?", user_id="ada"))
    assert long.startswith(hit.removesuffix("…")) and hit.endswith("…") and 150 < tokens.estimate(hit) <= 200
    assert before.endswith("…") and 60 < tokens.estimate(before) <= 80 and after == "After."
    assert hit in last(model_server) and before in last(model_server)


def test_of_a_long_message_the_part_is_shown_that_was_looked_for(start, model_server):
    client = start(recall_window=0, recall_limit=1)
    stations = [f"At station {number} the gauge reads {100 + 7 * number} centimetres. " for number in range(1, 60)]
    stations[40] += "The heron nests there. "
    append(client, "old", [said(f"My notes on the river: {''.join(stations)}")], user_id="ada")
    for question, shown in (("Where does the heron nest, by my notes?", 41), ("What do my notes on the river say?", 1)):
        answer = chat(client, question, user_id="ada", recall="always")
        ((hit,),) = recalled(answer)
        assert f"station {shown} " in hit and tokens.estimate(hit) <= 200 and hit in last(model_server)
        assert hit.endswith("…") and hit.startswith("…At station") == (shown > 1)
        stored = good(client.get(f"/api/sessions/{answer['session_id']}/turns/{answer['message_id']}?user_id=ada"))
        assert recalled(stored) == [[hit]], "the turn is stored with what it showed"


def test_what_the_model_looks_for_takes_all_recall_tokens_in_each_type_of_conversation(start, model_server):
    client = start()
    told = said(f"My notes: {'The river runs on. ' * 30}The heron nests at mile 7. {'The river runs on. ' * 30}")
    append(client, "old", [told, said(f"A heron it is. {'I have your notes. ' * 25}", "assistant")], user_id="ada")
    chat(client, "Hello.", session_id="s", user_id="ada")
    good(client.patch("/api/sessions/s", json={"type": "writing"}))  # which halves them for what is shown unasked
    model_server.main.queue(ToolCalls((("conversation_search", {"query": "heron nests mile"}),)), "At mile 7.")
    chat(client, "Where does it nest?", session_id="s", user_id="ada", recall="tools")
    (found,) = (message["content"] for message in prompts(model_server)[-1] if message["role"] == "tool")
    assert "The heron nests at mile 7." in found and "A heron it is." in found


def test_a_list_question_shows_all_that_is_found_each_cut_to_an_even_share(client, model_server):
    parts = ("fence", "pond", "shed", "compost", "lawn", "hedge", "gate", "roses", "path", "bench", "tap", "swing")
    for number, part in enumerate(parts, 1):
        told = f"The garden needs work: the {part} comes next. {'It is a long story, and it goes on. ' * 20}"
        append(client, f"chat-{number % 3}", [on(day(3, number), told)], user_id="ada")
    answer = chat(client, "In which order did I mention the work on the garden?", session_id="new", user_id="ada")
    lines = [line for block in blocks(model_server) for line in block.splitlines() if "garden" in line]
    assert {part for part in parts if any(f"the {part} comes next" in line for line in lines)} == {*parts}
    assert max(map(tokens.estimate, lines)) < 50 and sum(map(tokens.estimate, blocks(model_server))) <= 520 + 3 * 20
    stored = good(client.get(f"/api/sessions/new/turns/{answer['message_id']}"))["memory"]["excerpts"]
    assert [one["messages"] for one in stored] == [one["messages"] for one in answer["memory"]["excerpts"]]


@pytest.mark.parametrize("seed", range(2))
def test_excerpts_never_cost_more_than_recall_tokens(start, model_server, seed):
    """Measured on the blocks as the model gets them, tags and all, but for their addresses."""
    draw = random.Random(seed)
    pieces = ["zeppelin", "<b>&", "飞艇很大", "and more", "\n", "x" * 30]
    client = start()
    for session in range(8):
        told = [
            said(" ".join(draw.choices(pieces, k=draw.randint(1, 60))), name=draw.choice([None, "Ida"]))
            for _ in range(draw.randint(1, 9))
        ]
        append(client, f"{session}-{'s' * draw.randint(1, 100)}", told, user_id="ada")
    filled = 0
    for budget in (20, 60, 150, 400, 1000):
        changes = {"recall_tokens": budget, "recall_window": draw.randint(0, 3)}
        client = start(**changes)
        chat(client, "Which zeppelin?", user_id="ada", temporary=True)
        quoted = [re.sub(' uri="[^"]*"', "", block) for block in blocks(model_server)]
        assert tokens.estimate("\n".join(quoted)) <= budget
        assert sum(map(tokens.estimate, quoted)) <= budget
        filled += sum(map(tokens.estimate, quoted)) > budget / 2
    assert filled >= 3, "the budget is there to be used"


def test_an_excerpt_says_the_day_where_it_changes(start, model_server):
    client = start()
    days = (day(3, 1, 9, 30), day(3, 1, 9, 31), day(3, 2, 9, 30), day(3, 4, 9, 30), day(3, 4, 9, 31))
    append(client, "old", [on(when, f"Zeppelin {n}.") for n, when in enumerate(days)], user_id="ada")
    chat(client, "Which zeppelin?", user_id="ada")
    (block,) = blocks(model_server)
    assert re.findall(r"^(.*) user: Zeppelin (\d)\.$", block, re.M) == [
        ("2024-03-01 09:30", "0"), ("09:31", "1"), ("2024-03-02 09:30", "2"), ("2024-03-04 09:30", "3"), ("09:31", "4")
    ]  # fmt: skip
    assert re.match(r'<chat updated_at="2024-03-04" uri="recap://sessions/old/messages/\d+">\n2024-03-01', block)


# -- the bar


def characters_shown(answer: dict[str, Any]) -> int:
    return sum(len(one["content"]) for excerpt in answer["memory"]["excerpts"] for one in excerpt["messages"])


def test_a_message_that_asks_little_or_nothing_is_shown_less(client):
    """What is recalled stands after what providers bill as cached; but who asks gets all there is room for."""
    for number in range(12):
        chat(client, f"Note {number}: the Marigold is a boat, and boats need paint.", session_id="old", user_id="ada")
    told, asked = "I paint boats like the Marigold.", "Which boats need paint, the Marigold?"
    texts = (told, f"{told} {told} {asked}", asked)
    tells, also, asks = (
        characters_shown(chat(client, text, session_id=f"new-{number}", user_id="ada"))
        for number, text in enumerate(texts)
    )
    assert 0 < tells < also < asks and 2 * also <= asks


def test_of_a_message_that_also_tells_what_it_asks_is_looked_for(client):
    tulips = [f"The tulips in garden {number} are red and yellow this year." for number in range(6)]
    for number, text in enumerate(tulips):
        append(client, f"garden-{number}", [said(text)], user_id="ada")
    append(client, "papers", [said("The insurance of the zeppelin has the number 4711.")], user_id="ada")
    told = "The tulips in the garden are lovely this year, red and yellow everywhere."
    answer = chat(client, f"{told} Which number has the zeppelin's insurance?", user_id="ada")
    assert recalled(answer)[0] == ["The insurance of the zeppelin has the number 4711."]
    leaning = chat(client, f"{told} Do they need much water?", user_id="ada")  # what "they" are was told before
    assert words(leaning) & set(tulips)


def test_what_a_message_tells_says_what_its_question_is_about(client):
    others = [on(day(3, 4, minute=minute), f"Ticket {minute} about the printer is done.") for minute in range(20)]
    wish = "I carry my laptop all day, so I want nothing above a kilogram."
    append(client, "work", [*others, on(day(3, 5), wish)], user_id="ada")
    told = chat(client, "I'm looking for a laptop to carry. What should I know before buying one?", user_id="ada")
    assert any(wish in shown for shown in recalled(told))


@pytest.mark.parametrize(
    ("message", "asked", "around"),
    [
        ("I carry a laptop all day. Which bag would protect it best?", "Which bag would protect it best?", True),
        ("Which bag protects a laptop best?", "Which bag protects a laptop best?", False),
        ("Bring me up to date on the greenhouse.", "on the greenhouse.", False),  # the fixed words name nothing
        ("Where are we going in April?", "in April", False),  # beside the month it has only vague words
    ],
)
def test_around_a_question_is_searched_what_was_told_before_it(engine, message, asked, around):
    prepared = prepare_recall(engine, message, "ada", day(3, 9), UTC, mode="auto", budget=500).prepared_query
    assert prepared.query.text.strip() == asked
    assert (prepared.around.query.text if prepared.around else None) == (message if around else None)


def test_two_short_messages_are_shown_before_a_long_one_that_is_little_better(start):
    client = start(recall_tokens=120)
    long = "The kettle leaks in the kitchen: " + "this kitchen's kettle leaks and leaks, as Zoe says, " * 6
    for number, text in enumerate((long, "A kitchen kettle leaks.", "Some kettle leaks in the kitchen.")):
        append(client, f"s{number}", [said(text)], user_id="ada")
    question = "Which kettle leaks in the kitchen?"
    assert find(client, question, user_id="ada")[0]["content"] == long
    assert words(chat(client, question, user_id="ada")) == {
        "A kitchen kettle leaks.",
        "Some kettle leaks in the kitchen.",
    }


def test_a_turn_after_a_large_import_says_how_many_messages_it_left_out(start, model_server, monkeypatch):
    monkeypatch.setattr("memory.turn.context.ANALYSED_MAX", 20)
    client, locker = start(), "What did I say about my locker code?"
    notes = [CODE, *(f"Note {number}: the ferry was late." for number in range(45)), KETTLE]
    append(client, "old", list(map(said, notes)), user_id="ada")
    told = []
    for _ in range(3):  # each turn analyses 20 more, the newest first
        answer = chat(client, "What did I say about the kettle in the kitchen?", user_id="ada")
        assert KETTLE in words(answer)
        told.append(reason(answer).partition("; ")[2])
    assert told == [f"{n} older messages are still being indexed and were not searched" for n in (28, 11)] + [""]
    assert CODE in words(chat(client, locker, user_id="ada"))
    append(client, "eve", list(map(said, notes)), user_id="eve")
    assert CODE not in words(chat(client, locker, user_id="eve"))
    assert CODE in [result["content"] for result in find(client, "locker code", user_id="eve")]  # it searches all
    append(client, "kim", list(map(said, notes)), user_id="kim")
    engine_of(client.application).job_queue.run_due(["index"])
    answer = chat(client, locker, user_id="kim")
    assert CODE in words(answer) and "indexed" not in reason(answer)


def test_what_is_recalled_has_every_field_of_the_stored_message(engine):
    draft = MessageDraft("tool", CODE, "Ada", day(3, 1), "theirs-1", {"call": "c1"}, hidden_at=day(3, 2))
    with engine.database.write() as tx:
        row = engine.sessions.make(tx, Caller("default", user_id="ada"), "s")
        (new,) = append_messages(tx, row, [draft], day(3, 3))
        (located,) = load_windows(tx.connection(), row.owner_id, [new.id], 0).values()
        assert located.message == find_message(tx, new.id) == new
    assert [name for name, value in new._asdict().items() if value is None] == ["refused", "thumbs"]
