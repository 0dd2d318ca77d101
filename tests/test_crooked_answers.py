"""Crooked answers of a mini model, over HTTP: what becomes of the summary and the facts, and what is asked again."""

import json
import re
from typing import Any

import pytest

from models.jobs import ATTEMPTS
from tests.http import find, good, said
from tests.jobs import try_jobs
from tests.knowledge import Talk, digest_of, fact
from tests.model_server import FILTERED, Body, Status, Text

LYON, NUTS = "Lives in Lyon", "Is allergic to peanuts"
SAID = ["My name is Ada and I live in Lyon.", said("Good to know.", "assistant"), "I am allergic to peanuts."]
FACTS = [fact(LYON, 1, "I live in Lyon"), fact(NUTS, 3, "allergic to peanuts")]
GOOD = digest_of(*FACTS, topic="Ada", data=["Ada's home is Lyon"])
TEXT = json.dumps(GOOD)
SUMMARY = GOOD["summary"]
STRINGS = [f"The user {LYON.lower()}.", NUTS, "The user owns a yacht", "Ada's friend lives in Oslo and sails"]
COFFEE = '{"summary": {"topic": "coffee", "data": ["thought"]}, "facts": []}'
PARAGRAPH = "Ada told where she lives."


NUMBERS = [{**one, "source": str(one["source"]), "importance": "4", "supersedes": ["0"]} for one in FACTS]


def renamed(**names: str) -> str:
    return re.sub(r'"(\w+)":', lambda name: f'"{names.get(name[1], name[1])}":', TEXT)


WHOLE = {  # nothing is lost, and no second call is made
    "fences": f"```json\n{json.dumps(GOOD, indent=2)}\n```",
    "chatty": f"Sure! Here is the updated memory:\n\n```json\n{TEXT}\n```\n\nLet me know if you need {{more}}.",
    "thoughts": f"<think>\nThey want JSON: {COFFEE}\n</think>\n\n{TEXT}",
    "thoughts without a beginning": f"Perhaps {COFFEE}? No.\n</think>\n{TEXT}",
    "broken thoughts that end in a line": f"Perhaps {{'summary': {{'topic': 'coffee',}}, 'facts': []}}</think>{TEXT}",
    "trailing commas": TEXT.replace("}]", "},]").replace("}, ", ",}, "),
    "Python's quotes": str(GOOD),
    "comments": TEXT.replace('{"summary"', '{\n// the memory\n"summary"', 1).replace('"facts"', '/* new */ "facts"'),
    "in a string": json.dumps(TEXT),
    "in an array": f"[{TEXT}]",
    "in another object beside a status": json.dumps({"status": "ok", "result": GOOD}),
    "as the text of another object": json.dumps({"response": TEXT}),
    "numbers": json.dumps({"summary": {**SUMMARY, "data": [1, 2.5]}, "facts": NUMBERS}),
    "unquoted names": re.sub(r'"(\w+)":', r"\1:", TEXT),
    "typographic quotes": re.sub(r'"([^"]*)"', r"“\1”", TEXT),
    "raw newlines": TEXT.replace("home is", "home\nis"),
    "thoughts at the end": f"{TEXT}<think>was that right? {{",
    "no summary around the sections": json.dumps({**SUMMARY, "facts": FACTS}),
    "more than was asked for": json.dumps({**GOOD, "confidence": 0.9, "summary": {**SUMMARY, "mood": "calm"}}),
    "two objects": f"{json.dumps({'summary': SUMMARY})}\n\n{json.dumps({'facts': FACTS})}",
    "two summaries": f"{TEXT}\n{COFFEE.replace('facts', 'key_facts').replace('summary', 'memory')}",
    "other names": renamed(summary="conversation_summary", facts="key_facts"),
    "a missing end": TEXT[:-2],
    "no quotes": json.dumps({**GOOD, "facts": [{"text": LYON}, {"fact": NUTS, "category": "identity"}]}),
}
AS_TEXT = {  # the text becomes a section, and facts stay
    "a text as summary": json.dumps({"summary": PARAGRAPH, "facts": FACTS}),
    "texts as summary": json.dumps({"memory": [PARAGRAPH], "memories": FACTS}),
}
AS_PROSE = {  # there are no facts
    "prose": PARAGRAPH,
    "a list": f"# Memory\n\n- {PARAGRAPH}\n- She mentioned peanuts.",
    "YAML": f"summary:\n  topic: Ada\n  discussed:\n    - {PARAGRAPH}\nfacts:\n  - text: {LYON}\n",
}
REFUSED = {  # the last good summary stays
    "a refusal": "I'm sorry, but I can't help with storing personal information about individuals.",
    "a Chinese refusal": "抱歉，我无法处理这些个人信息。",
    "a refusal as summary": json.dumps({"summary": "I cannot provide a summary of this.", "facts": []}),
    "nothing": "{}",
    "an error": json.dumps({"error": {"message": "I can't do that."}}),
    "German names": json.dumps({"zusammenfassung": {"thema": "Ada"}, "fakten": []}),
    "half a summary": TEXT[: TEXT.index("home")],
    "an inner object of a broken one": TEXT.replace('"summary":', '"summary"'),
    "null": "null",
}


def test_json_slightly_off_is_read_whole(model_app, model_server):
    for kind, text in WHOLE.items():
        talk = Talk(model_app, model_server, kind.replace(" ", "-").replace("'", ""))
        talk.say(*SAID)
        done = talk.digest(Text(text))
        assert (done["state"], done["latest"]["sections"]["topic"]) == ("current", "Ada"), kind
        assert sorted(talk.texts()) == [NUTS, LYON], kind
        data = ["1", "2.5"] if kind == "numbers" else ["Ada's home is Lyon"]
        assert (done["latest"]["sections"]["data"], done["latest"]["usage"]["calls"]) == (data, 1), kind


def test_a_text_is_what_was_discussed_beside_what_was_known(model_app, model_server):
    for kind, text in (AS_TEXT | AS_PROSE).items():
        talk = Talk(model_app, model_server, kind.replace(" ", "-"))
        talk.hear("I like tea.", reply=digest_of(topic="Tea"))
        talk.say("My name is Ada and I live in Lyon.", said("Good to know.", "assistant"), "I am allergic to peanuts.")
        answer = text.replace('"source": 3', '"source": 4').replace('"source": 1', '"source": 2')
        done = talk.digest(Text(answer))
        assert (done["state"], done["latest"]["sections"]["topic"]) == ("current", "Tea"), kind
        assert PARAGRAPH in done["latest"]["sections"]["discussed"]
        assert sorted(talk.texts()) == ([NUTS, LYON] if kind in AS_TEXT else []), kind


def test_what_is_no_summary_is_repaired_once_and_refused(model_app, model_server):
    for kind, text in REFUSED.items():
        talk = Talk(model_app, model_server, kind.replace(" ", "-"))
        talk.hear("I like tea.", reply=digest_of(topic="Tea"))
        talk.say(*SAID)
        before = len(talk.digests())
        done = talk.digest(Text(text), Text(text))
        assert (done["state"], done["latest"]["sections"]["topic"]) == ("pending", "Tea"), kind
        assert len(talk.digests()) == before + 2
        assert "OPENAI_SUMMARY_MODEL" in done["error"]
        assert "refusal" not in kind or "declines the task" in done["error"]
        assert "I am allergic to peanuts." in talk.prompt("And now?")
        good(talk.client.delete(f"/api/sessions/{talk.session}"))  # else its job would run with the next one


def test_a_small_model_that_writes_nothing_under_a_schema_is_asked_in_words(model_app, model_server):
    """One that says something is asked again under its schema."""
    nothing = Text("{}"), digest_of(topic=""), Text("{\n" + "\n" * 300, finish="length")
    for number, reply in enumerate((*nothing, Text('{"note": "Ada likes tea"}'))):
        model_server.requests.clear()
        talk = Talk(model_app, model_server, f"s{number}")
        talk.say(*SAID)
        done = talk.digest(reply, GOOD)
        assert (done["state"], done["latest"]["sections"]["topic"]) == ("current", "Ada")
        asked = [request.body for request in model_server.requests if request.model == "mini"]
        assert ["response_format" in body for body in asked] == [True, reply not in nothing]


def test_a_summary_of_what_somebody_cannot_do_is_no_refusal(model_app, model_server):
    texts = (
        "The user can't eat peanuts and is sorry.",
        "I can't eat peanuts.",
        "Leider verträgt die Person keine Nüsse.",
    )
    for number, text in enumerate((*texts, "Sorry news: Ada's cat died. " * 30 + "I can't help.")):
        talk = Talk(model_app, model_server, f"s{number}")
        talk.say(*SAID)
        assert talk.digest(Text(text))["state"] == "current"


def test_facts_without_a_quote_rest_on_the_persons_own_words_or_are_dropped(talk):
    talk.say(*SAID, said("The moon is made of cheese.", "assistant"), "My sister Ida has 2 cats. Peanuts again?")
    strings = [*STRINGS, "The moon is made of cheese", "My sister Ida has 2 cats", "Ida has 3 cats", "Ada hates Lyon"]
    talk.digest({**GOOD, "facts": strings})
    quotes = {one["text"]: one["quote"] for one in talk.facts()}
    assert quotes == {
        STRINGS[0]: "My name is Ada and I live in Lyon.",
        NUTS: "I am allergic to peanuts.",
        "My sister Ida has 2 cats": "My sister Ida has 2 cats",
    }


def messages_of(body: Any) -> str:
    return str(body["messages"][1]["content"].split("<messages>")[1])


def numbered(prompt: Any) -> list[int]:
    return [int(number) for number in re.findall(r"^\[(\d+)\] ", prompt[1]["content"].split("<messages>")[1], re.M)]


def read_by(talk: Talk) -> list[list[int]]:
    return [numbered(prompt) for prompt in talk.digests()]


def test_a_cut_answer_is_asked_for_again_with_half_of_the_messages(talk):
    talk.say(*(f"I own {number} books." for number in range(1, 9)))

    def cut(body: Any) -> Any:
        few = len(numbered(body["messages"])) < 3
        return digest_of(topic="Books") if few else Text(json.dumps(digest_of(*FACTS))[:-90], finish="length")

    talk.server.mini.default = cut
    done = talk.digest()
    assert (done["state"], done["latest"]["through"], done["error"]) == ("current", 8, None)
    assert read_by(talk) == [[*range(1, 9)], [1, 2, 3, 4], [1, 2], [3, 4], [5, 6], [7, 8]]
    talk.say("I own 9 books.", "I own 10 books.", "I own 11 books.")
    assert talk.digest()["state"] == "current"
    assert read_by(talk)[6:] == [[9, 10, 11], [9], [10], [11]]  # another job begins anew


def test_an_answer_that_is_always_cut_off_names_the_limit(talk):
    talk.say("I like tea.", "And coffee.")
    talk.server.mini.default = lambda _: Text(TEXT[:80] + " \n" * 300, finish="length")
    failed = talk.digest()
    assert (failed["state"], failed["latest"]) == ("pending", None)
    assert "limit of tokens" in failed["error"]
    assert all(name in failed["error"] for name in ("num_predict", "OLLAMA_CONTEXT_LENGTH", "OPENAI_SUMMARY_MODEL"))
    assert read_by(talk) == [[1, 2], [1]]  # no repair, which would be longer still
    assert "And coffee." in talk.prompt("What do I like?")


def test_of_one_message_a_cut_answer_with_a_complete_summary_is_kept(talk):
    talk.say(SAID[0])
    done = talk.digest(Text(TEXT[: TEXT.index("allergic")], finish="length"))
    assert (done["state"], talk.texts()) == ("current", [LYON])


def test_a_complete_answer_is_kept_although_the_server_calls_it_cut(talk):
    for number, summary in enumerate((digest_of(topic="Tea")["summary"], "They like tea."), 1):
        talk.say(f"I like tea number {number}.", "And coffee.")
        done = talk.digest(Text(json.dumps({"summary": summary, "facts": []}), finish="length"))
        assert (done["state"], done["latest"]["version"]) == ("current", number)
    assert read_by(talk) == [[1, 2], [3, 4]]


def all_tries(talk: Talk) -> dict[str, Any]:
    """Let the job try to the last."""
    for _ in range(ATTEMPTS):
        try_jobs(talk.client, "summary")
    return talk.summary()


@pytest.mark.parametrize(
    "bad", [Text("{}"), Text("I'm sorry, but I can't help with that."), Text(TEXT[:80], finish="length")]
)
def test_a_message_that_is_always_answered_badly_does_not_block_the_others(talk, bad):
    talk.hear("I like tea.", reply=digest_of(topic="Tea", constraints=["No milk"]))
    talk.say("I own 2 books.", "I am allergic to ODD peanuts.", "ODD: {}", "I own 3 books.", "I own 4 books.")
    talk.server.mini.default = lambda body: (
        bad if "ODD" in messages_of(body) else digest_of(topic="Books", constraints=["No milk"])
    )
    assert all_tries(talk)["state"] == "current", "the second one comes at the first try of the job's next part"
    versions = good(talk.client.get(f"{talk.address}/versions"))["items"]
    assert [(one["through"], one["model"]) for one in versions] == [
        (6, "mini-model"),
        (4, "recap-extractive"),
        (3, "recap-extractive"),
        (2, "mini-model"),
        (1, "mini-model"),
    ]
    sections = versions[2]["sections"]
    assert (sections["topic"], sections["constraints"]) == ("Books", ["No milk", "Allergic to ODD peanuts"])
    assert "Allergic to ODD peanuts" in talk.texts()
    assert find(talk.client, "ODD peanuts", session_id="s")


def test_a_slip_at_messages_that_came_later_is_tried_again(talk):
    talk.hear("I like tea.", reply=digest_of(topic="Tea"))
    talk.say("ODD: {}", "I own 3 books.")
    parts: list[str] = []

    def answer(body: Body) -> Any:
        shown = messages_of(body)
        if "ODD" not in shown and "3 books" in shown:
            parts.append(shown)
            if len(parts) == 2:  # after the look at a later message, the job's last part
                talk.say("SLIP", "I own 5 books.")
        return Text("{}") if "ODD" in shown or "SLIP" in shown else digest_of(topic="Books")

    talk.server.mini.default = answer
    done = all_tries(talk)
    assert len(parts) == 2 and (done["state"], done["latest"]["through"]) == ("pending", 3)


def test_words_that_are_always_answered_badly_are_not_quoted_in_the_summary(talk):
    talk.hear("I like tea.", reply=digest_of(topic="Tea"))
    talk.say("I am allergic to ODD peanuts.", "I own 3 books.", "I own 4 books.")
    talk.server.mini.default = lambda body: Text("{}") if "ODD" in str(body) else digest_of(topic="Books")
    done = all_tries(talk)
    assert (done["state"], done["latest"]["through"], talk.texts()) == ("current", 4, [])
    assert find(talk.client, "ODD peanuts", session_id="s")


def test_a_model_that_answers_nothing_well_covers_nothing(talk):
    talk.hear("I like tea.", reply=digest_of(topic="Tea"))
    talk.say(*(f"I own {number} books." for number in range(2, 40)))
    talk.server.mini.default = lambda _: Text("{}")
    failed = all_tries(talk)
    assert (failed["state"], failed["latest"]["through"]) == ("failed", 1)
    assert "OPENAI_SUMMARY_MODEL" in failed["error"]
    assert len(talk.digests()) < 50
    talk.server.mini.default = lambda _: digest_of(topic="Books")
    talk.say("And I sold them all.")
    assert talk.digest()["latest"]["through"] == 40


def test_the_last_message_waits_for_the_next_where_it_is_answered_badly(talk):
    talk.say("I like tea.", "ODD: {}")
    talk.server.mini.default = lambda body: Text("{}") if "ODD" in messages_of(body) else digest_of(topic="Tea")
    all_tries(talk)
    waiting = all_tries(talk)
    assert (waiting["state"], waiting["latest"]["through"]) == ("failed", 1)
    talk.say("I like coffee.")
    done = all_tries(talk)
    assert (done["state"], done["latest"]["through"]) == ("current", 3)


def test_a_summary_that_keeps_too_little_is_added_to_the_one_before(talk):
    """Small models write only what is new."""
    books = [f"The book number {number} of Ada costs {number} euros at the shop" for number in range(2, 12)]
    before = {"constraints": ["Budget: 90 euros"], "excluded": [{"option": "E-books", "reason": "screens"}]}
    talk.hear("I own books.", reply=digest_of(topic="Books", data=books, open_questions=["Which next?"], **before))
    talk.say("I also want a lamp for 30 euros.", "Which one?")
    new = digest_of(fact("Wants a lamp", 2, "want a lamp"), topic="Shopping", requirements=["A lamp"], data=books[:1])
    refused = talk.digest(new, new)
    assert (refused["state"], refused["latest"]["version"]) == ("pending", 1)
    talk.server.mini.queue(Status(503), Status(503), Status(503), new, new)
    for state in ("pending", "pending"):  # after an error of the network it has to shrink once more
        try_jobs(talk.client, "summary")
        assert talk.summary()["state"] == state
    talk.server.mini.queue(new)
    try_jobs(talk.client, "summary")
    done = talk.summary()
    sections = done["latest"]["sections"]
    assert (done["state"], talk.texts()) == ("current", ["Wants a lamp"])
    assert (sections["topic"], sections["requirements"], sections["data"]) == ("Shopping", ["A lamp"], books)
    assert {name: sections[name] for name in before} == before and sections["open_questions"] == ["Which next?"]


def test_a_refused_message_after_one_that_is_answered_badly_blocks_nothing(talk):
    talk.hear("I like tea.", reply=digest_of(topic="Tea"))
    talk.say("ODD: {}", "POISON", "I own 3 books.")

    def answer(body: Any) -> Any:
        shown = messages_of(body)
        return Text("{}") if "ODD" in shown else FILTERED if "POISON" in shown else digest_of(topic="Books")

    talk.server.mini.default = answer
    assert all_tries(talk)["latest"]["through"] == 4


def test_a_message_that_the_server_refuses_does_not_block_the_others(talk):
    talk.hear("I like tea.", reply=digest_of(topic="Tea"))
    messages = [f"I own {number} books." for number in range(2, 8)]
    talk.say(*messages[:2], "POISON", *messages[2:])
    talk.server.mini.default = lambda body: (
        FILTERED if "POISON" in body["messages"][1]["content"] else digest_of(topic="Books")
    )
    done = talk.digest()
    assert (done["state"], done["error"], done["latest"]["through"]) == ("current", None, 8)
    assert done["latest"]["sections"]["topic"] == "Books"
    assert [positions for positions in read_by(talk) if 4 not in positions] == [[1], [2], [3], [5, 6, 7, 8]]
    kept = [one["content"] for one in talk.client.get("/api/sessions/s/messages").json["items"]]
    assert "POISON" in kept  # nothing is lost
    refused = [one["refused"] for one in talk.client.get("/api/sessions/s/messages").json["items"]]
    assert [bool(one) for one in refused] == [place == 3 for place in range(8)], "only it, and for every later prompt"
    assert "Filtered" in refused[3]["reason"]


def test_a_message_that_is_too_long_is_read_in_part(talk):
    talk.say("BEGINNING " + "and so on " * 2_000 + "ENDING", "I like tea.")
    small = {"error": {"message": "Too long.", "type": "x", "param": "messages", "code": "context_length_exceeded"}}

    def limited(body: Any) -> Any:
        return Status(400, small) if len(body["messages"][1]["content"]) > 6_000 else digest_of(topic="Long")

    talk.server.mini.default = limited
    done = talk.digest()
    assert (done["state"], done["latest"]["through"]) == ("current", 2)
    taken = [prompt[1]["content"] for prompt in talk.digests() if len(prompt[1]["content"]) <= 6_000]
    assert "BEGINNING" in taken[0] and "ENDING" in taken[0] and "..." in taken[0]
    assert "I like tea." in taken[1]


def test_a_window_too_small_for_anything_is_told(talk):
    talk.say("and so on " * 200)
    tiny = {"error": {"message": "Too long.", "type": "x", "param": "messages", "code": "context_length_exceeded"}}
    talk.server.mini.default = lambda _: Status(400, tiny)
    failed = talk.digest()
    assert (failed["state"], failed["latest"]) == ("pending", None)
    assert "longer than the model" in failed["error"]
