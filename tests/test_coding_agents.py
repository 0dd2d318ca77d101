"""Coding agents: what they send is answered, and what a person said is stored.

The requests have the form that these programs sent to a server that wrote them down (Claude Code 2.1.197, Codex
0.171.0, OpenCode 1.18.33, GitHub Copilot CLI 1.0.102, pi 0.73.1, gptme 0.35.1), but for their long instructions and
lists of tools.
"""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory.transcripts.transcript import TOOL_RESULT_CHARS_MAX
from tests.http import chat, error, good, read_all
from tests.model_server import CutStream, ToolCalls
from tests.openai import sent, user
from tests.test_auth import with_key

pytestmark = pytest.mark.scripted

DEVICE, ACCOUNT = "408ddab0" * 8, "1b6b4ea3-6d3c-4a0e-9a0e-5c4f9f0c8c55"
SESSIONS = ("511e0f0c-9a03-4234-ba6c-d7c4842102b0", "a01f3a6c-a25f-4ede-b8fe-e15bfae43b73")
REMINDER = "<system-reminder>\nToday's date is 2026-11-28.\n</system-reminder>\n\n"
BASH = {"name": "Bash", "description": "Run it.", "input_schema": {"type": "object", "properties": {"command": {}}}}
RUN = ToolCalls((("Bash", {"command": "pytest -q tests/test_cats.py"}),))


def claude_code(client: FlaskClient, *messages: Any, session: str = SESSIONS[0], **more: Any) -> Any:
    ids = {"device_id": DEVICE, "account_uuid": "", "session_id": session}
    texts = [{"type": "text", "text": REMINDER}, {"type": "text", "text": messages[0], "cache_control": {"ttl": "1h"}}]
    body = {
        "model": "recap",
        "messages": [user(texts), {"role": "system", "content": "Available agent types: Explore."}, *messages[1:]],
        "system": [
            {"type": "text", "text": f"x-anthropic-billing-header: cch={session};"},
            {"type": "text", "text": "Be brief."},
        ],
        "tools": [BASH, {"type": "web_search_20260318", "name": "web_search"}],
        "metadata": {"user_id": json.dumps(ids)},
        "max_tokens": 32000,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
        "stream": True,
    }
    headers = {"X-Claude-Code-Session-Id": session, "anthropic-beta": "claude-code-20250219"}
    answer = client.post("/v1/messages?beta=true", json={**body, **more}, headers=headers)
    assert answer.status_code == 200 and "failed" not in answer.text, answer.text  # read to the end
    return answer


def events(answer: Any) -> list[Any]:
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]


def stored(client: FlaskClient, session: str, **query: Any) -> list[tuple[str, str]]:
    messages = read_all(client, f"/api/sessions/{session}/messages", **query)
    return [(one["role"], one["content"]) for one in messages]


# -- Claude Code


def test_claude_code_is_answered_and_remembered_in_its_next_session(client, model_server):
    model_server.main.queue("Noted.", "Miso.")
    answer = claude_code(client, "My cat is called Miso.")
    assert answer.headers["X-Memory-Session-Id"] == SESSIONS[0]
    assert answer.headers["X-Memory-Left-Out"] == "tools.1 (web_search_20260318)"
    assert stored(client, SESSIONS[0], user_id=DEVICE) == [("user", "My cat is called Miso."), ("assistant", "Noted.")]
    body = sent(model_server)[0]
    assert body["reasoning_effort"] == "high" and body["max_completion_tokens"] == 32000
    assert [tool["function"]["name"] for tool in body["tools"]] == ["Bash"]
    assert "billing" not in str(body) and REMINDER in str(body["messages"][1]["content"][0]["text"])

    claude_code(client, "What is my cat called?", session=SESSIONS[1])
    assert "My cat is called Miso." in str(sent(model_server)[1]["messages"]), "recalled from the other session"
    assert stored(client, SESSIONS[1], user_id=DEVICE)[-1] == ("assistant", "Miso.")


def test_the_person_and_the_session_are_told_apart(client):
    for user_id, person, session in (
        (f"user_{DEVICE}_account_{ACCOUNT}_session_{SESSIONS[0]}", ACCOUNT, SESSIONS[0]),
        (f"user_{DEVICE}_account__session_{SESSIONS[0]}", DEVICE, SESSIONS[0]),
        (json.dumps({"device_id": DEVICE, "account_uuid": ACCOUNT, "session_id": SESSIONS[1]}), ACCOUNT, SESSIONS[1]),
        ('{"device_id": 7}', '{"device_id": 7}', None),
        ("{", "{", None),
        ("user_ada_session_b", "user_ada_session_b", None),
    ):
        body = {"model": "recap", "max_tokens": 9, "messages": [user("Hello")], "metadata": {"user_id": user_id}}
        there = client.post("/v1/messages", json=body).headers["X-Memory-Session-Id"]
        found = good(client.get(f"/api/sessions/{there}", query_string={"user_id": person}))
        assert found["user_id"] == person and session in (there, None)
    body["metadata"] = {"user_id": "ada", "session_id": "mine"}
    assert client.post("/v1/messages", json=body).headers["X-Memory-Session-Id"] == "mine"


def test_a_helper_of_the_agent_gets_a_session_of_its_own(client, model_server):
    """It sends its own conversation under the session of the one who asked it."""
    model_server.main.queue("I look.", "Found it.", "It is in cats.py.")
    claude_code(client, "Where is Miso?")
    helper = claude_code(client, "Search the code for Miso.").headers["X-Memory-Session-Id"]
    assert helper != SESSIONS[0]
    claude_code(client, "Where is Miso?", {"role": "assistant", "content": "I look."}, user("And?"))
    talk = [("user", "Where is Miso?"), ("assistant", "I look."), ("user", "And?"), ("assistant", "It is in cats.py.")]
    assert stored(client, SESSIONS[0], user_id=DEVICE) == talk
    assert stored(client, helper, user_id=DEVICE)[0] == ("user", "Search the code for Miso.")


def test_the_arguments_of_a_tool_come_in_pieces_and_a_large_result_is_stored_cut(client, model_server):
    model_server.main.queue(RUN, "All pass.")
    begun = events(claude_code(client, "Run the tests."))
    pieces = [one["delta"]["partial_json"] for one in begun if one.get("delta", {}).get("type") == "input_json_delta"]
    assert len(pieces) > 3 and json.loads("".join(pieces)) == {"command": "pytest -q tests/test_cats.py"}
    (block,) = [one["content_block"] for one in begun if one["type"] == "content_block_start"]
    kinds = [one["type"] for one in begun]
    assert kinds.count("content_block_stop") == 1 and kinds[-2:] == ["message_delta", "message_stop"]
    output = "".join(f"line {number}\n" for number in range(5_000))
    called = {"role": "assistant", "content": [{**block, "input": json.loads("".join(pieces))}]}
    result = {"type": "tool_result", "tool_use_id": block["id"], "content": output}
    for _ in range(2):  # the same again is the same message, although it is stored in another form
        claude_code(client, "Run the tests.", called, user([result]))
    assert output in str(sent(model_server)[1]["messages"]).replace("\\n", "\n"), "the model reads all of it"
    talk = stored(client, SESSIONS[0], user_id=DEVICE)
    assert [role for role, _ in talk] == ["user", "assistant", "tool", "assistant"]
    kept = talk[2][1]
    assert kept.startswith("line 0\n") and kept.endswith("line 4999\n") and f"of {len(output):,} characters" in kept
    assert len(kept) < TOOL_RESULT_CHARS_MAX + 100


def test_tokens_are_counted_before_a_request_is_sent(client, model_server):
    def count(**body: Any) -> int:
        tokens: int = good(client.post("/v1/messages/count_tokens?beta=true", json={"model": "recap", **body}))[
            "input_tokens"
        ]
        return tokens

    short = count(messages=[user("Hello")])
    assert 0 < short < count(messages=[user("Hello" * 100)])
    assert short < count(messages=[user("Hello")], tools=[BASH], thinking={"type": "adaptive"})
    assert short < count(messages=[user("Hello")], system="Be brief.")
    assert error(client.post("/v1/messages/count_tokens", json={}), 400)["type"] == "invalid_request_error"
    assert sent(model_server) == [] and read_all(client, "/api/sessions") == []


def test_documents_schemas_and_search_results_are_passed_on(client, model_server):
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    blocks = [
        {"type": "document", "title": "Notes", "source": {"type": "text", "media_type": "text/plain", "data": "Miso."}},
        {"type": "document", "source": pdf},
        {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}},
        {
            "type": "search_result",
            "title": "Cats",
            "source": "https://a",
            "content": [{"type": "text", "text": "Grey."}],
        },
        {"type": "container_upload", "file_id": "f"},
        {"type": "text", "text": "Whose?"},
    ]
    body = {
        "model": "recap",
        "max_tokens": 9,
        "messages": [user(blocks)],
        "container": "c",
        "metadata": {"session_id": "s"},
    }
    body["output_config"] = {"format": {"type": "json_schema", "schema": schema}, "effort": "max"}
    answer = client.post("/v1/messages", json=body)
    good(answer)
    asked = sent(model_server)[0]
    assert asked["response_format"]["json_schema"]["schema"] == schema and asked["reasoning_effort"] == "high"
    texts = [part["text"] for part in asked["messages"][0]["content"] if part["type"] == "text"]
    assert texts == ["Notes\nMiso.", "document: https://a/b.pdf", "Cats\nhttps://a\nGrey.", "Whose?"]
    (file,) = [part["file"] for part in asked["messages"][0]["content"] if part["type"] == "file"]
    assert file == {"filename": "document", "file_data": "data:application/pdf;base64,JVBERi0="}
    assert set(answer.headers["X-Memory-Left-Out"].split(", ")) == {
        "messages.0.content.2.source (url)",
        "messages.0.content.4 (container_upload)",
        "container",
    }


# -- Codex


def codex(client: FlaskClient, *items: Any, thread: str = SESSIONS[0], **more: Any) -> Any:
    def message(role: str, text: str) -> Any:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    context = message("user", "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>")
    given = [message("user", one) if isinstance(one, str) else one for one in items]
    body = {
        "model": "recap",
        "stream": True,
        "input": [message("developer", "You are a coding agent."), context, *given],
        "tools": [
            {"type": "function", "name": "exec_command", "parameters": {"type": "object"}, "strict": False},
            {
                "type": "custom",
                "name": "apply_patch",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
            },
            {"type": "namespace", "name": "multi_agent_v1", "tools": []},
            {"type": "web_search", "external_web_access": False},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": thread,
        "client_metadata": {"session_id": thread},
    }
    headers = {"session-id": thread, "thread-id": thread, "originator": "codex_exec"}
    answer = client.post("/v1/responses", json={**body, **more}, headers=headers)
    assert answer.status_code == 200 and "failed" not in answer.text, answer.text  # read to the end
    return answer


def test_codex_is_answered_and_remembered_by_its_persons_key(model_app, model_server):
    client = with_key(model_app, engine_of(model_app).keys.create("acme", "ada", ["chat"])[0])
    model_server.main.queue("Noted.", "Miso.")
    answer = codex(client, "My cat is called Miso.")
    assert answer.headers["X-Memory-Left-Out"] == "tools.2 (namespace), tools.3 (web_search)"
    assert stored(client, SESSIONS[0]) == [("user", "My cat is called Miso."), ("assistant", "Noted.")]
    codex(client, "What is my cat called?", thread=SESSIONS[1])
    assert "My cat is called Miso." in str(sent(model_server)[1]["messages"])
    plain = {"model": "recap", "input": "My dog is called Rex.", "store": False}
    good(client.post("/v1/responses", json=plain))
    assert len(read_all(client, "/api/sessions")) == 2, "another program means store=false"


def test_codex_calls_functions_and_tools_that_take_a_text(client, model_server):
    patch = "*** Begin Patch\n*** End Patch"
    calls = (("exec_command", {"cmd": "ls --all --recursive"}), ("apply_patch", {"input": patch}))
    model_server.main.queue(ToolCalls(calls), "Done.")
    answered = events(codex(client, "Do it."))
    deltas = [one["delta"] for one in answered if one["type"] == "response.function_call_arguments.delta"]
    assert len(deltas) > 3 and json.loads("".join(deltas)) == {"cmd": "ls --all --recursive"}
    (whole,) = [one["input"] for one in answered if one["type"] == "response.custom_tool_call_input.done"]
    assert whole == patch
    output = answered[-1]["response"]["output"]
    assert [one["type"] for one in output] == ["function_call", "custom_tool_call"]
    assert [one["item"] for one in answered if one["type"] == "response.output_item.done"] == output
    results = [
        {"type": "function_call_output", "call_id": output[0]["call_id"], "output": "cats.py"},
        {"type": "custom_tool_call_output", "call_id": output[1]["call_id"], "output": "Patched."},
    ]
    codex(client, "Do it.", *output, {"type": "web_search_call", "id": "ws_1"}, *results)
    said = [(message["role"], message.get("content")) for message in sent(model_server)[1]["messages"]]
    assert said[-3:] == [("assistant", None), ("tool", "cats.py"), ("tool", "Patched.")]
    assert stored(client, SESSIONS[0])[-1] == ("assistant", "Done.")
    assert "start: x" in str(sent(model_server)[0]["tools"])


# -- programs that speak chat completions


def test_of_what_cline_and_copilot_send_the_persons_words_are_stored(client, model_server):
    state = "<environment_details>\n# Visual Studio Code Visible Files\ncats.py\n</environment_details>"
    parts = [{"type": "text", "text": "My cat is called Miso."}, {"type": "text", "text": state}]
    text = "<current_datetime>2026-11-29T10:51:20.502+00:00</current_datetime>\n\nMy cat is called Miso."
    for session, content in (("cline", parts), ("copilot", text)):
        body = {"model": "recap", "messages": [user(content)], "stream": False}
        good(client.post("/v1/chat/completions", json=body, headers={"X-Session-Id": session}))
        assert stored(client, session)[0] == ("user", "My cat is called Miso.")
    assert sent(model_server)[0]["messages"][-1]["content"][-1]["text"] == state
    chat(client, "<environment_details> is a tag. What does it mean?", session_id="t")
    assert stored(client, "t")[0][1].startswith("<environment_details>"), "as a person said it"


def test_of_what_qwen_code_sends_the_persons_words_are_stored(client):
    setup = [
        user(
            [
                {
                    "type": "text",
                    "text": "This is the Qwen Code. We are setting up the context for our chat.\nIt is Sunday.",
                }
            ]
        ),
        {"role": "assistant", "content": "Got it. Thanks for the context!"},
    ]
    update = user("Managed memory directory: `/w`\n\nScan the conversation and update durable managed memory.")
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    steps = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "none"}]
    for text in ("My cat is called Miso.", "What is my cat called?"):
        told = [*setup, user(text)]
        body = {"model": "recap", "user": "ada", "messages": told}
        answer = good(client.post("/v1/chat/completions", json=body))["choices"][0]["message"]
        for own in ([update], [update, *steps]):
            good(client.post("/v1/chat/completions", json={**body, "messages": [*told, answer, *own]}))
    found = read_all(client, "/api/sessions", user_id="ada")
    assert [stored(client, one["id"])[0] for one in found] == [("user", text), ("user", "My cat is called Miso.")]
    assert [len(stored(client, one["id"])) for one in found] == [2, 2]


OK = {"role": "assistant", "content": "Ok."}
BEGINNINGS: dict[str, list[Any]] = {  # what an agent puts before the person's first words
    "Qwen Code": [
        user("This is the Qwen Code. We are setting up the context for our chat.\nIt is Sunday."),
        {"role": "assistant", "content": "Got it. Thanks for the context!"},
    ],
    "Aider": [user("I switched to a new code base. Please don't consider the above files"), OK],
    "Codex": [user("<environment_context>\n<cwd>/cats</cwd>\n</environment_context>")],
    "a call": [
        {"role": "assistant", "content": "", "function_call": {"name": "now", "arguments": "{}"}},
        {"role": "function", "name": "now", "content": "Sunday"},
    ],
}


@pytest.mark.parametrize("begins", BEGINNINGS.values(), ids=BEGINNINGS)
@pytest.mark.parametrize("system", [[], [{"role": "developer", "content": "Be brief."}]], ids=["alone", "told"])
def test_memory_is_an_instruction_and_no_word_of_an_agents_example(client, model_server, begins, system):
    good(client.put("/api/instructions/style", json={"user_id": "ada", "text": "Answer in verse."}))
    body = {"model": "recap", "user": "ada", "messages": [*system, *begins, user("What is my cat called?")]}
    good(client.post("/v1/chat/completions", json=body))
    first, *others = sent(model_server)[0]["messages"]
    assert first["role"] == ("developer" if system else "system") and "Answer in verse." in first["content"]
    assert others[:-1] == begins


def test_of_what_aider_sends_the_persons_words_are_stored(model_app, model_server):
    """Each conversation begins with the same example: without it, the next one would take the place of this one."""
    client = with_key(model_app, engine_of(model_app).keys.create("acme", "ada", ["chat"])[0])
    ok = {"role": "assistant", "content": "Ok."}
    switch = "I switched to a new code base. Please don't consider the above files or try to edit them any longer."
    begin = [user("Change the greeting"), {"role": "assistant", "content": "Ok, I will:\n\nHey"}, user(switch), ok]
    files = [user("I am not sharing any files that you can edit yet."), ok]
    rules = "\n\nTo suggest changes to a file you MUST return the entire content of the updated file."
    reply = {"role": "assistant", "content": "Noted."}

    def send(*talk: Any) -> str:
        body = {"model": "recap", "temperature": 0, "messages": [*begin, *talk]}
        answer = client.post("/v1/chat/completions", json=body)
        good(answer)
        return str(answer.headers["X-Memory-Session-Id"])

    model_server.main.queue("Noted.", "Grey.", "Miso.")
    first = send(*files, user(f"My cat is called Miso.{rules}"))
    assert rules in sent(model_server)[0]["messages"][-1]["content"] and switch in str(
        sent(model_server)[0]["messages"]
    )
    again = send(user("My cat is called Miso."), reply, *files, user(f"What colour is Miso?{rules}"))
    assert again == first
    talk = [("user", "My cat is called Miso."), ("assistant", "Noted."), ("user", "What colour is Miso?")]
    assert stored(client, first) == [*talk, ("assistant", "Grey.")]
    other = send(*files, user(f"What is my cat called?{rules}"))
    assert other != first and stored(client, first) == [*talk, ("assistant", "Grey.")]
    assert stored(client, other) == [("user", "What is my cat called?"), ("assistant", "Miso.")]
    assert "My cat is called Miso." in str(sent(model_server)[2]["messages"])

    commit = "You are an expert software engineer that generates concise, one-line Git commit messages based on diffs."
    asked = [
        {"role": "system", "content": commit},
        user("\nUSER: Add a file.\n\nASSISTANT: Noted.\n\n# Diffs:\n+alpha"),
    ]
    good(client.post("/v1/chat/completions", json={"model": "recap", "messages": asked}))
    assert sent(model_server)[3]["messages"] == asked and len(read_all(client, "/api/sessions")) == 2
    tag = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"
    told = {"role": "assistant", "content": f"\n<{tag}>\n\nA cat.\n\n</{tag}>\n\nNoted.  \n\n"}
    restored = [
        user("My cat is called Miso.  \n"),
        told,
        user("What colour is Miso?"),
        {**reply, "content": "Grey."},
        user("Sure?"),
    ]
    assert send(*restored) == first and len(stored(client, first)) == 6


def parts(*texts: str) -> list[Any]:
    return [{"type": "text", "text": text} for text in texts]


def test_what_an_agent_notes_of_an_interruption_is_not_the_persons_words(model_app, model_server):
    client = with_key(model_app, engine_of(model_app).keys.create("acme", "ada", ["chat"])[0])
    model_server.main.queue("One, two.", "I went on.", "One, two.", "I went on.", "Noted.", "I went on.")
    count, partial = "Count slowly.", {"role": "assistant", "content": "One, two."}
    claude_code(client, count)
    claude_code(client, count, partial, user(parts("[Request interrupted by user]", "Go on.")))
    talk = [("user", count), ("assistant", "One, two."), ("user", "Go on."), ("assistant", "I went on.")]
    assert stored(client, SESSIONS[0]) == talk

    codex(client, count, thread="t")
    codex(
        client, count, "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>", "Go on.", thread="t"
    )
    assert stored(client, "t")[-2:] == talk[-2:] and "turn_aborted" not in str(stored(client, "t"))
    assert "turn_aborted" in str(sent(model_server)[3]["messages"])

    claude_code(client, count, session=SESSIONS[1])
    resumed = [{"role": "assistant", "content": "No response requested."}, user("Go on.")]
    texts = parts(REMINDER, f"{count}\n", "Continue from where you left off.")
    claude_code(client, count, *resumed, session=SESSIONS[1], messages=[user(texts), *resumed])
    assert [words for role, words in stored(client, SESSIONS[1]) if role == "user"] == [count, "Go on."]


@pytest.mark.parametrize("stays", [False, True], ids=["stopped", "kept"])
def test_a_first_reply_that_broke_off_and_is_left_out_begins_no_second_session(model_app, model_server, stays):
    client = with_key(model_app, engine_of(model_app).keys.create("acme", "ada", ["chat"])[0])

    def send(*texts: str) -> str:
        body = {"model": "recap", "stream": True, "messages": [user(text) for text in texts]}
        answer = client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200 and answer.text
        return str(answer.headers["X-Memory-Session-Id"])

    model_server.main.queue("One, two." if stays else CutStream(), "I went on.")
    first = send("Count slowly.")
    second = send("Count slowly.", "Go on.")
    assert first == second
    assert stored(client, second) == [("user", "Count slowly."), ("user", "Go on."), ("assistant", "I went on.")]


def test_titles_that_are_asked_for_as_json_are_not_stored(model_app, model_server):
    client = with_key(model_app, engine_of(model_app).keys.create("acme", "ada", ["chat"])[0])
    title = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    both = {**title, "properties": {**title["properties"], "author": {"type": "string"}}}
    for schema, count in ((title, 0), (both, 2)):
        model_server.main.queue('{"title": "Cats"}', '{"title": "Cats"}')
        asked = "<session>\nMy cat is called Miso.\n</session>\n\nWrite it in the language that the user wrote in."
        output = {"format": {"type": "json_schema", "schema": schema}}
        claude_code(client, asked, system="Name this coding session.", output_config=output)
        format = {"type": "json_schema", "name": "codex_output_schema", "schema": schema, "strict": True}
        codex(
            client,
            "Generate a task title.\n\nUser prompt:\nMy cat is called Miso.",
            text={"format": format},
            thread="t",
        )
        assert len(read_all(client, "/api/sessions")) == count


NOTES = {  # how a conversation goes on after that
    "Claude Code": "This session is being continued from a previous conversation that ran out of context. The summary",
    "Codex": "Another language model started to solve this problem and produced a summary of its thinking process.",
    "pi": "The conversation history before this point was compacted into the following summary:",
    "Qwen Code": "<state_snapshot>\n    <overall_goal>Know the cat.</overall_goal>\n</state_snapshot>",
    "Copilot": "The conversation history has been summarized to free up context.",
    "LibreChat": "<summary>\nThe cat is grey.\n</summary>\n\nThis is your own checkpoint.",
}


def test_an_agents_summary_is_not_the_persons_words_and_its_session_goes_on(model_app, model_server):
    client = with_key(model_app, engine_of(model_app).keys.create("acme", "ada", ["chat"])[0])
    begun = [user("My cat is called Miso."), {"role": "assistant", "content": "Noted."}]
    later = [user("It is grey."), {"role": "assistant", "content": "A grey one."}]
    local = "<command-name>/compact</command-name>\n   <command-args></command-args>\n"
    talk = [("user", "My cat is called Miso."), ("assistant", "Noted."), ("user", "It is grey.")]
    talk += [("assistant", "A grey one."), ("user", "Go on."), ("assistant", "I went on.")]

    model_server.main.queue("Noted.", "A grey one.", "I went on.", "So I did.")
    note = parts(REMINDER, f"{NOTES['Claude Code']} below covers it.")
    claude_code(client, "My cat is called Miso.")
    claude_code(client, "My cat is called Miso.", begun[1], later[0])
    after = [
        user(note),
        later[1],
        user(parts("<local-command-stdout>Compacted</local-command-stdout>", local, "Go on.")),
    ]
    for more in ([], [{"role": "assistant", "content": "I went on."}, user("And?")]):
        claude_code(client, "", messages=[*after, *more])
        assert stored(client, SESSIONS[0])[: len(talk)] == talk
    assert stored(client, SESSIONS[0])[len(talk) :] == [("user", "And?"), ("assistant", "So I did.")]
    assert NOTES["Claude Code"] in str(sent(model_server)[2]["messages"])

    model_server.main.queue("Noted.", "A grey one.", "I went on.", "So I did.")
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]}
    codex(client, "My cat is called Miso.", thread="t")
    codex(client, "My cat is called Miso.", said, "It is grey.", thread="t")
    after = ["My cat is called Miso.", "It is grey.", NOTES["Codex"], "Go on."]  # it keeps what the person said
    codex(client, *after, thread="t")
    assert stored(client, "t") == talk
    codex(client, *after, {**said, "content": [{"type": "output_text", "text": "I went on."}]}, "And?", thread="t")
    assert stored(client, "t") == [*talk, ("user", "And?"), ("assistant", "So I did.")]

    def send(*messages: Any) -> str:
        answer = client.post("/v1/chat/completions", json={"model": "recap", "messages": list(messages)})
        good(answer)
        return str(answer.headers["X-Memory-Session-Id"])

    answer = {"role": "assistant", "content": "Got it. Thanks for the additional context!"}
    for note in ([user(NOTES["pi"])], [user(NOTES["Qwen Code"]), answer]):
        model_server.main.queue("Noted.", "A grey one.", "I went on.")
        first = send(begun[0])
        send(*begun, later[0])
        assert send(*note, *later, user("Go on.")) == first and stored(client, first) == talk

    model_server.main.queue("I went on.", "So I did.")
    first = send(user(NOTES["Copilot"]), user("Go on."))
    assert stored(client, first) == talk[-2:]
    again = send(user(NOTES["Copilot"]), user("Go on."), {"role": "assistant", "content": "I went on."}, user("And?"))
    assert again == first and len(stored(client, first)) == 4


def test_the_steps_of_an_agent_whose_calls_are_code_are_replies_of_their_own(client, model_server):
    steps = ["First.\n\n```shell\ncat notes.txt\n```", "Then.\n\n```shell\ncat out.txt\n```", "It says alpha."]
    model_server.main.queue(*steps)
    messages = [{"role": "system", "content": "You are gptme."}, user("What does it say?")]
    for step in steps:
        body = {"model": "recap", "user": "ada", "messages": messages}
        session = client.post("/v1/chat/completions", json=body).headers["X-Memory-Session-Id"]
        messages += [{"role": "assistant", "content": step}, {"role": "system", "content": "Executed: alpha"}]
    own = "<system>No tool call detected in last message. Did you mean to finish?</system>"
    body["messages"] = [*messages[:-1], user(own)]
    good(client.post("/v1/chat/completions", json=body))
    talk, result = stored(client, session, user_id="ada"), ("tool", "Executed: alpha")
    done = [("assistant", steps[0]), result, ("assistant", steps[1]), result, ("assistant", steps[2])]
    assert talk[:-1] == [("user", "What does it say?"), *done] and len(read_all(client, "/api/sessions")) == 1


def test_what_a_person_says_in_the_form_of_an_agent_is_stored(client):
    heard = (
        "<order_item><name>tea</name></order_item>",
        "<my-card>Hello</my-card>\nWhy is it empty?",
        "[Look]",
        [{"type": "text", "text": "[Look]"}, {"type": "image_url", "image_url": {"url": "https://a/b.png"}}],
        parts("<user_message>Hello.</user_message>", "<environment_state>idle</environment_state>"),
    )
    for number, content in enumerate(heard):
        body = {"model": "recap", "messages": [user(content)]}
        good(client.post("/v1/chat/completions", json=body, headers={"X-Session-Id": f"s{number}"}))
        text = content if isinstance(content, str) else "[Look]\n[image]" if number == 3 else "Hello."
        assert stored(client, f"s{number}")[0] == ("user", text)


def test_completions_and_moderations_are_passed_on(client, model_server):
    text = {"object": "text_completion", "choices": [{"text": "miso", "index": 0, "finish_reason": "stop"}]}
    model_server.pages["/v1/completions"] = text
    body = {"model": "recap", "prompt": "cat = ", "suffix": "\n", "max_tokens": 9}
    assert good(client.post("/v1/completions", json=body)) == text
    (received,) = model_server.requests
    assert received.body == {**body, "model": "main-model"}
    good(client.post("/v1/moderations", json={"input": "Hello"}))
    assert model_server.requests[-1].path == "/v1/moderations"
    assert read_all(client, "/api/sessions") == []


def test_whatever_a_program_sends_a_key_of_one_person_counts(model_app, model_server):
    client = with_key(model_app, engine_of(model_app).keys.create("acme", "ada", ["chat"])[0])
    for path, body in (
        ("chat/completions", {"user": "bob"}),
        ("chat/completions", {"safety_identifier": "bob"}),
        ("responses", {"user": "bob", "input": "Hello"}),
        ("messages", {"metadata": {"user_id": "bob"}, "max_tokens": 9}),
        ("completions", {"user": "bob", "prompt": "Hello"}),
    ):
        good(client.post(f"/v1/{path}", json={"model": "recap", "messages": [user("Hello")], **body}))
    assert {one["user_id"] for one in read_all(client, "/api/sessions")} == {"ada"}
    assert error(client.post("/api/chat", json={"message": "Hello", "user_id": "bob"}), 404)["code"] == "user_not_found"
