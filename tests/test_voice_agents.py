"""What voice agents send: replies as far as they were heard, words as far as they were understood, several guesses."""

import threading
from typing import Any

import pytest

from memory.leases import Leases
from tests.http import history, meanwhile, sessions
from tests.model_server import Delay, Dictation, Status
from tests.openai import assistant, complete, post, talk, user

GREETING = assistant("Hi, this is Kim. How can I help?")
WHOLE = "Certainly. There are three flights to Porto, and the first of them leaves at ten in the morning."
NAMED = [{"session": None}, {"session": None, "user": "ada"}, {"session": "call", "user": "ada"}]
OF_A_PERSON = NAMED[1:]
ids = {"ids": ["nobody", "person", "session"]}


@pytest.fixture
def client(model_app, model_server):
    model_server.main.default = lambda body: WHOLE
    return model_app.test_client()


def said(client, **query: Any) -> list[str]:
    """The words of the only session."""
    (session,) = sessions(client)
    return [words for _, words in history(client, session["id"], **owner_of(session), **query)]


def owner_of(session: dict[str, Any]) -> dict[str, Any]:
    return {"user_id": session["user_id"]} if session["user_id"] else {}


def interrupted(client, model_server, messages, pieces=("Certainly. ", "There "), **more: Any) -> None:
    """Ask, and close the stream in the middle of the reply."""
    model_server.main.queue(dictation := Dictation())
    for piece in pieces:
        dictation.say(piece)
    with post(client, messages, stream=True, **more) as answer:
        next(chunk for chunk in answer.iter_encoded() if pieces[-1].strip().encode() in chunk)
    dictation.end()


@pytest.mark.parametrize("more", NAMED, **ids)
@pytest.mark.parametrize("heard", ["Certainly.", "Cert", "Certainly. There-", WHOLE[:60]])
def test_of_a_whole_reply_stands_what_was_heard(client, more, heard):
    began = [GREETING, user("Flights to Porto"), assistant(heard), user("Wait, on Tuesday.")]
    complete(client, began[:2], **more)
    complete(client, began, **more)
    complete(client, [*began, assistant(WHOLE), user("Yeah.")], **more)
    assert said(client) == [GREETING["content"], "Flights to Porto", heard, "Wait, on Tuesday.", WHOLE, "Yeah.", WHOLE]


@pytest.mark.parametrize("more", NAMED, **ids)
def test_of_each_interrupted_reply_stands_what_was_heard(client, model_server, more):
    began = [user("Flights to Porto"), assistant("Cert"), user("On Tuesday."), assistant("Certainly"), user("At ten.")]
    interrupted(client, model_server, began[:1], **more)
    interrupted(client, model_server, began[:3], **more)
    complete(client, began, **more)
    assert said(client) == ["Flights to Porto", "Cert", "On Tuesday.", "Certainly", "At ten.", WHOLE]
    assert said(client, branch=1) == ["Certainly. There "]


@pytest.mark.parametrize("more", NAMED, **ids)
@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "interrupted"])
def test_a_reply_of_which_nothing_was_heard_is_left_out(client, model_server, more, is_whole):
    began = [GREETING, user("Flights to Porto"), user("on Tuesday"), assistant(WHOLE), user("At ten.")]
    if is_whole:
        complete(client, began[:2], **more)
    else:
        interrupted(client, model_server, began[:2], **more)
    complete(client, began[:3], **more)
    complete(client, began, **more)
    assert said(client) == [message["content"] for message in began] + [WHOLE]


@pytest.mark.parametrize("more", NAMED, **ids)
@pytest.mark.parametrize("begins", [[], [GREETING]], ids=["", "greeted"])
def test_words_that_are_understood_bit_by_bit_are_one_message(client, model_server, more, begins):
    for understood in ("i want to", "I want to.", "I want to fly"):
        interrupted(client, model_server, [*begins, user(understood)], **more)
    began = [*begins, user("I want to fly to Porto."), assistant(WHOLE), user("Yeah.")]
    complete(client, began[:-2], **more)
    complete(client, began, **more)
    assert said(client) == [message["content"] for message in began] + [WHOLE]


@pytest.mark.parametrize("more", NAMED, **ids)
def test_what_follows_an_interrupted_question_and_is_another_one_is_kept_beside_it(client, model_server, more):
    """Of clients that send their newest message alone, and of conversations that begin in another way."""
    questions = ["Flights to Porto", "Flight numbers", "No", "Nothing else"]
    for question in questions:
        interrupted(client, model_server, talk(question), **more)
    found = [
        words
        for session in sessions(client)
        for role, words in history(client, session["id"], **owner_of(session))
        if role == "user"
    ]
    assert sorted(found) == sorted(questions)


def test_a_message_with_more_words_than_one_that_was_answered_is_another(client):
    for question in ("Yes", "Yes, please."):
        complete(client, talk(question), "call", user="ada")
    assert said(client) == ["Yes", WHOLE, "Yes, please.", WHOLE]
    for question in ("A tale", "A tale of the sea"):
        complete(client, talk(question), None, user="ada")
    assert len(sessions(client)) == 3


@pytest.mark.parametrize("more", OF_A_PERSON, ids=ids["ids"][1:])
def test_a_guess_at_what_is_said_gives_way_to_a_better_one(client, model_server, more):
    """A program that answers before the person has finished asks again with each word, all at once."""
    began = [user("Flights to Porto"), assistant(WHOLE)]
    complete(client, began[:1], **more)
    go = threading.Event()
    model_server.main.queue(Delay(go, "First."), "Second.")

    def ask(text: str) -> str:
        answer = post(client.application.test_client(), [*began, user(text)], stream=True, **more)
        return answer.text

    with meanwhile(lambda: ask("on")):
        model_server.wait_for_requests(2)
        with meanwhile(lambda: ask("on Tuesday")) as better:
            assert model_server.wait_for_requests(3), "it did not wait for the answer to the first"
        go.set()
    assert "Second." in better[0]
    assert said(client) == ["Flights to Porto", WHOLE, "on Tuesday", "Second."]


@pytest.mark.parametrize("other", ["on Tuesday", "on Tuesday at ten"])
@pytest.mark.parametrize("more", OF_A_PERSON, ids=ids["ids"][1:])
def test_of_words_that_are_sent_several_times_at_once_only_the_last_version_is_stored(
    client, model_server, monkeypatch, more, other
):
    """Whichever of them is answered first: each is answered."""
    waiting, wait = threading.Semaphore(0), Leases.wait_until_free
    monkeypatch.setattr(Leases, "wait_until_free", lambda *waits: waiting.release() or wait(*waits))
    began = [user("Flights to Porto"), assistant(WHOLE)]
    complete(client, began[:1], **more)
    go = threading.Event()
    model_server.main.queue(Delay(go, "First."))

    def ask(text: str, temperature: float = 1.0) -> str:
        answer = post(client.application.test_client(), [*began, user(text)], temperature=temperature, **more)
        return answer.json["choices"][0]["message"]["content"]

    with meanwhile(lambda: ask("on")):
        model_server.wait_for_requests(2)
        with meanwhile(lambda: ask("on Tuesday", 0.1)) as one:
            assert waiting.acquire(timeout=5.0)
            with meanwhile(lambda: ask(other, 0.2)) as two:
                assert waiting.acquire(timeout=5.0)
                go.set()
    assert one == two == [WHOLE]
    assert said(client) == ["Flights to Porto", WHOLE, max("on Tuesday", other, key=len), WHOLE]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("label", ["Conversation summary: {}", "<chat_history_summary>\n{}\n</chat_history_summary>"])
def test_a_call_goes_on_behind_a_programs_own_summary(client, model_server, role, label):
    began = [GREETING, *talk("Flights to Porto", WHOLE, "On Tuesday.", WHOLE)]
    complete(client, began[:-3], None, user="ada")
    complete(client, began[:-1], None, user="ada")
    summary = {"role": role, "content": label.format("They want to fly to Porto.")}
    complete(client, [summary, *began[-2:], user("Yeah.")], None, user="ada")
    assert said(client) == [message["content"] for message in began] + ["Yeah.", WHOLE]
    assert "They want to fly" in str(model_server.requests[-1].body["messages"])


def test_a_text_of_a_persons_that_is_called_a_summary_is_theirs(client):
    began = [user("Conversation summary: we spoke of Porto. What is missing?"), assistant(WHOLE), user("Go on.")]
    complete(client, began[:1], None, user="ada")
    complete(client, began, None, user="ada")
    assert said(client) == [message["content"] for message in began] + [WHOLE]


def test_another_agent_that_begins_anew_in_the_same_call_hides_nothing(client):
    complete(client, talk("Flights to Porto"), "call", user="ada")
    began = [assistant("Bea here, of billing."), user("By card."), assistant(WHOLE), user("Yeah.")]
    complete(client, began[:2], "call", user="ada")
    complete(client, began, "call", user="ada")
    assert said(client) == ["Flights to Porto", WHOLE, *(message["content"] for message in began), WHOLE]


def test_what_a_webhook_of_a_voice_service_says_of_the_call_names_the_person_and_reaches_no_strict_server(
    client, model_server
):
    """Its body is a chat completion with more fields, which OpenAI's own server refuses."""
    call = {"id": "c-1", "type": "inboundPhoneCall"}
    named = {"user_id": "ada", "session_id": "c-1"}
    refusal = {"error": {"message": "Unrecognized request arguments supplied: call, customer", "type": "invalid"}}
    bodies = ({**named, "metadata": {"plan": "x"}}, {"metadata": named}, {**named, "call": call, "customer": {}})
    for number, body in enumerate(bodies):
        if "call" in body:
            model_server.main.queue(Status(400, refusal))
        complete(client, talk(f"Question {number}"), None, **body)
    (session,) = sessions(client)
    assert (session["id"], session["user_id"], session["message_count"]) == ("c-1", "ada", 6)
    sent = [request.body for request in model_server.requests]
    assert sent[0]["metadata"] == {"plan": "x"} and "metadata" not in sent[1] and "call" in sent[2]
    assert not {"user_id", "session_id", "call", "customer"} & sent[3].keys()
