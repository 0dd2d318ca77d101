"""How real model servers answer: their refusals, errors, ends of answers and JSON modes, in their own words.

The bodies follow the providers' public documentation and issue trackers.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, ModelError
from memory.llm import ChatMessage, ModelRequest, TextDelta, Tool, ToolCall, complete, text_of
from tests.llm import SCHEMA, ask, both, chunk, data, failure
from tests.model_server import Body, CutStream, Json, Raw, SseError, Status, Text

LOOK = Tool("look", "Looks.", {"type": "object", "properties": {}})


@pytest.fixture
def model(make):
    return make()


def openai_error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None} | more}


def gemini_error(code: int, message: str, status: str = "INVALID_ARGUMENT", **more: Any) -> list[Any]:
    return [{"error": {"code": code, "message": message, "status": status} | more}]


def mistral_extra(place: str) -> dict[str, Any]:
    detail = {"type": "extra_forbidden", "loc": ["body", *place.split(".")], "msg": "Extra inputs are not permitted"}
    return {"object": "error", "message": {"detail": [detail]}, "type": "invalid_request_error", "code": None}


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def refusal(message: str, status: int = 400, **more: Any) -> Status:
    return Status(status, openai_error(message, **more))


def gemini(status: int, message: str, name: str = "INVALID_ARGUMENT", **more: Any) -> Status:
    return Status(status, gemini_error(status, message, name, **more))


AZURE_POLICY = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
AZURE_KIND = {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
FLAGGED = 'gpt-4o requires moderation on OpenAI. Your input was flagged for "violence".'
LOW = "Your credit balance is too low to access the Anthropic API."
POOR = "Sorry, your account balance is insufficient"
TPM = (
    "Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens per "
    "minute (TPM): Limit 6000, Requested 8211, please reduce your message size and try again."
)
TPM_KIND = {"type": "tokens", "code": "rate_limit_exceeded"}
QUOTA = "You exceeded your current quota, please check your plan and billing details. Please retry in 34.2s."
RETRY_INFO = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
NO_MODEL = "models/x is not found for API version v1main"
USED_UP = "You have reached your specified API usage limits. You will regain access on 2026-12-01."
NO_CREDITS = "Your newly created team doesn't have any credits or licenses yet."
DECOMMISSIONED = "The model `llama3-70b-8192` has been decommissioned and is no longer supported."
FILTERED, QUOTA_SPENT, UNKNOWN_MODEL = CONTENT_REFUSED, "model_quota_exhausted", "model_not_found"

SENSITIVE = Status(400, {"contentFilter": [{"level": 1}], "error": {"code": "1301", "message": "系统检测到不安全内容"}})
NO_ENDPOINT = Json({"error": "Unexpected endpoint or method. (POST /chat/completions)"})
NO_SUCH = {"message": "AiError: No such model @cf/x or task", "code": 5007}
PAGE = "<!DOCTYPE html>\n<html lang=en><title>Error 400 (Bad Request)!!1 &amp; more</title><p>That is all we know."
NO_ACCESS = {
    "message": "The requested model 'x' is not available for this API key, or the model name is invalid.",
    "type": "key_model_access_denied",
    "param": "model",
    "code": "403",
}
NAMELESS = "Provider returned error"  # by OpenRouter, with the words of the model's provider beside it


def relayed(words: str) -> Status:
    return refusal(NAMELESS, code=400, metadata={"raw": json.dumps({"message": words}), "provider_name": "X"})


ERRORS: dict[str, tuple[Status, str, str]] = {
    "azure filter": (refusal(AZURE_POLICY, **AZURE_KIND), FILTERED, "content management policy"),
    "openai prompt": (refusal("Invalid prompt: it was flagged.", code="invalid_prompt"), FILTERED, "flagged"),
    "openrouter moderation": (Status(403, {"error": {"code": 403, "message": FLAGGED}}), FILTERED, "moderation"),
    "deepseek risk": (refusal("Content Exists Risk"), FILTERED, "Content Exists Risk"),
    "gemini": (gemini(400, "The prompt was blocked: PROHIBITED_CONTENT"), FILTERED, "other words"),
    "gemini key": (gemini(400, "API key not valid. Please pass one."), "model_key_refused", "OPENAI_API_KEY"),
    "gemini model": (gemini(404, NO_MODEL, "NOT_FOUND"), UNKNOWN_MODEL, "OPENAI_MODEL"),
    "gemini quota": (gemini(429, QUOTA, "EXHAUSTED", details=RETRY_INFO), "model_busy", "current quota"),
    "deepseek model": (refusal("Model Not Exist"), UNKNOWN_MODEL, "Model Not Exist"),
    "mistral model": (Status(400, {"message": "Invalid model: x", "type": "invalid_model"}), UNKNOWN_MODEL, "Invalid"),
    "openrouter model": (refusal("gpt is not a valid model ID", code=400), UNKNOWN_MODEL, "not a valid model"),
    "hugging face model": (refusal("'x' is not supported by any provider you have enabled."), UNKNOWN_MODEL, "enabled"),
    "bedrock model": (Status(400, {"detail": "Unsupported model x, use models API"}), UNKNOWN_MODEL, "models API"),
    "cloudflare model": (Status(400, {"errors": [NO_SUCH], "success": False}), UNKNOWN_MODEL, "No such model"),
    "gemini page": (Status(400, PAGE), "model_rejected_request", "Error 400 (Bad Request)!!1 & more"),
    "anthropic credit": (refusal(LOW), QUOTA_SPENT, "no credit left"),
    "siliconflow balance": (Status(403, {"code": 30001, "message": POOR}), QUOTA_SPENT, "no credit left"),
    "zhipu balance": (
        Status(429, {"error": {"code": "1113", "message": "余额不足,请充值。"}}),
        QUOTA_SPENT,
        "余额不足",
    ),
    "sign in": (Status(200, PAGE), "model_bad_answer", 'not JSON: a web page with the title "Error 400'),
    "deepseek balance": (refusal("Insufficient Balance", 402), QUOTA_SPENT, "Insufficient Balance"),
    "openai too large": (refusal(TPM, 429, **TPM_KIND), CONTEXT_EXCEEDED, "6000"),
    "zhipu filter": (SENSITIVE, FILTERED, "系统检测到"),
    "lm studio address": (NO_ENDPOINT, UNKNOWN_MODEL, "ends in /v1"),
    "ollama address": (Status(404, "404 page not found"), UNKNOWN_MODEL, "ends in /v1"),
    "openrouter relays": (relayed("This model is not a multimodal model"), "model_images_refused", "multimodal"),
    "groq flex": (refusal("Flex tier capacity exceeded", 498), "model_busy", "capacity exceeded"),
    "anthropic usage limit": (refusal(USED_UP), QUOTA_SPENT, "regain access"),
    "litellm budget": (refusal("Budget has been exceeded! Current cost: 14.2, Max budget: 10.0"), QUOTA_SPENT, "14.2"),
    "litellm access": (Status(403, {"error": NO_ACCESS}), UNKNOWN_MODEL, "for this API key"),
    "xai without credits": (Status(403, {"code": "No.", "error": NO_CREDITS}), QUOTA_SPENT, "any credits"),
    "dashscope arrears": (refusal("Make sure your account is in good standing."), QUOTA_SPENT, "in good standing"),
    "groq decommissioned": (refusal(DECOMMISSIONED, code="model_decommissioned"), UNKNOWN_MODEL, "OPENAI_MODEL"),
    "hugging face gone": (Status(410, {"error": "The model is gone."}), UNKNOWN_MODEL, "The model is gone"),
    "koboldcpp busy": (Status(503, {"detail": {"msg": "Server is busy.", "type": "x"}}), "model_failed", "is busy"),
    "anthropic overloaded": (refusal("Overloaded", 529, type="overloaded_error"), "model_busy", "Overloaded"),
    "gemini overloaded": (Json(gemini_error(503, "It is overloaded.", "UNAVAILABLE")), "model_failed", "overloaded"),
}


@pytest.mark.parametrize(("reply", "code", "words"), ERRORS.values(), ids=ERRORS)
def test_errors_say_what_is_wrong_in_the_servers_own_words(server, model, reply, code, words):
    server.main.default = lambda body: reply
    error = failure(model, ask())
    assert error.code == code
    assert words in error.message and words not in (error.kept if error.quoted and words in error.quoted else "")
    assert "http" not in error.message.split("127.0.0.1")[0].replace("http://", "")


WINDOWS = [
    ("This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.", 4096),
    ("prompt is too long: 208310 tokens > 200000 maximum", 200_000),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
    ("the request exceeds the available context size (8192 tokens), try increasing it", 8192),
    (
        "Trying to keep the first 5171 tokens. However, the model is loaded with context length of only 4096 tokens",
        4096,
    ),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32_768),
    (TPM, 6000),
    ("`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3474 `inputs` tokens and 60 `max_new_tokens`", 2048),
    ("input length and `max_tokens` exceed context limit: 90402 + 116650 > 204648, decrease input length", 204_648),
    (refusal("the request exceeds the available context size.", 500, n_prompt_tokens=5000, n_ctx=2048), 2048),
    (relayed("This model's maximum context length is 8192 tokens."), 8192),
    (refusal("Request body too large for gpt-4o model. Max size: 8000 tokens.", 413), 8000),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.", 4081),
    ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424),
    ("The tokens to keep are greater than the context length (n_keep: 16398>= n_ctx: 4096). Try a larger one", 4096),
    ("This model's maximum prompt length is 131072 but the request contains 136973 tokens.", 131_072),
    ("Context length 5000 is greater than max_seq_len 4096", 4096),
    ("Your prompt is 5000 tokens long, but the maximum supported sequence length is just 4096!", 4096),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", 30_720),
]


@pytest.mark.parametrize(("words", "window"), WINDOWS)
def test_the_window_is_read_from_the_refusal(server, model, words, window):
    assert model.window is None
    server.main.queue(refusal(words) if isinstance(words, str) else words)
    error = failure(model, ask())
    assert (error.code, error.window, model.window) == (CONTEXT_EXCEEDED, window, window)


def test_without_a_number_the_window_is_a_guess_below_what_was_refused(server, model):
    server.main.queue(refusal("x", code="context_length_exceeded"))
    assert failure(model, ask(content="word " * 4000)).window in range(3000, 5000)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "30"}, openai_error("Slow down"), 30.0),
        ({"Retry-After-Ms": "42000", "Retry-After": "1"}, openai_error("Slow down"), 42.0),
        ({}, gemini_error(429, "Quota", "RESOURCE_EXHAUSTED", details=RETRY_INFO), 34.0),
        ({}, openai_error("Rate limit reached. Please try again in 7.66s."), 7.66),
        ({}, openai_error("You have exceeded the token rate limit. Please retry after 26 seconds."), 26.0),
        ({}, openai_error("Rate limit reached. Please try again in 1m12.5s."), 72.5),
    ],
)
def test_the_wait_that_a_server_asks_for_is_told(server, model, headers, body, seconds):
    server.main.default = lambda _: Status(429, body, headers)
    assert failure(model, ask()).retry_after == seconds
    assert len(server.requests) == 1, "so long a wait is left to the caller"


def test_a_time_to_wait_for_is_told_as_the_seconds_until_then(server, model):
    server.main.default = lambda _: Status(429, headers={"Retry-After": formatdate(time.time() + 3600, usegmt=True)})
    assert 3000 < (failure(model, ask()).retry_after or 0) <= 3600


# -- refused parameters

CLIENT = {"metadata": {"team": "x"}, "user": "ada", "safety_identifier": "ada", "temperature": 0.2}
NAMING = ("metadata", "user", "safety_identifier", "prompt_cache_key", "stream_options")
UNKNOWN = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'
REFUSING: dict[str, Callable[[str], Status]] = {
    "groq": lambda name: refusal(f"property '{name}' is unsupported"),
    "gemini": lambda name: gemini(400, UNKNOWN.format(name)),
    "mistral": lambda name: Status(422, mistral_extra(name)),
    "xai": lambda name: Status(400, {"error": f"Argument not supported on this model: {camel_case(name)}"}),
    "openai": lambda name: refusal(f"Unrecognized request argument supplied: {name}"),
}


@pytest.mark.parametrize("refuse", REFUSING.values(), ids=REFUSING)
def test_what_only_names_somebody_is_left_out_where_it_is_refused(server, model, refuse):
    """One refusal for each name; afterwards no call is refused any more."""

    def strict(body: Body) -> Any:
        bad = next((name for name in NAMING if name in body), None)
        return refuse(bad) if bad else "Hi."

    server.main.default = strict
    request = replace(ask(stream=True), client={"model": "gpt-4o", **CLIENT}, cache_key="s")
    assert complete(model, request)[0] == "Hi."
    before = len(server.requests)
    assert complete(model, request)[0] == "Hi."
    assert len(server.requests) == before + 1
    assert server.requests[-1].body["temperature"] == 0.2


def test_a_clients_parameter_that_means_something_is_not_left_out(server, model):
    server.main.queue(refusal("Unsupported value: 'temperature'", param="temperature"))
    error = failure(model, replace(ask(), client={"temperature": 0.2}))
    assert error.upstream is not None and error.upstream.param == "temperature"
    assert len(server.requests) == 1


def test_a_message_about_users_is_no_refusal_of_the_parameter(server, model):
    server.main.queue(refusal("messages.3: user messages must have non-empty content"))
    assert failure(model, replace(ask(), client={"user": "ada"})).code == "model_rejected_request"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("sent", "taken"), [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
def test_the_limit_of_tokens_goes_by_the_name_that_the_server_knows(server, model, sent, taken):
    server.main.default = lambda body: REFUSING["openai"](sent) if sent in body else "Hi."
    assert complete(model, replace(ask(), client={sent: 50}))[0] == "Hi."
    assert server.requests[-1].body[taken] == 50 and sent not in server.requests[-1].body


@pytest.mark.parametrize(
    "words",
    [
        "This model does not support response format `json_schema`. See supported models.",
        "This response_format type is unavailable now",
        "The specified schema produces a constraint that has too many states for serving.",
        "Failed to parse grammar",
        "<400> InternalError.Algo.InvalidParameter: 'response_format.type' json_schema is not supported",
        "litellm.UnsupportedParamsError: ollama does not support parameters: ['response_format'], for model=llama3.",
        relayed("This model does not support response_format json_schema"),
        refusal("No endpoints found that can handle the requested parameters.", 404),
        refusal("response_format is not implemented", 501),
        Text(""),  # of a model that thinks, under a grammar that leaves no room for thoughts
    ],
)
def test_json_is_asked_for_in_the_strictest_way_that_the_server_takes(server, model, words):
    server.main.queue(refusal(words) if isinstance(words, str) else words, "{}", "{}")
    for _ in range(2):
        complete(model, ask(schema=SCHEMA))
    kinds = [request.body["response_format"]["type"] for request in server.requests]
    assert kinds == ["json_schema", "json_object", "json_object"]
    server.main.queue(Status(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}), "{}")
    complete(model, ask(schema=SCHEMA))
    assert "response_format" not in server.requests[-1].body


def test_json_or_a_call_that_a_model_failed_at_once_is_asked_for_in_the_same_form_again(server, model):
    server.main.queue(refusal("Failed to generate JSON.", code="json_validate_failed"), "{}")
    assert complete(model, ask(schema=SCHEMA))[0] == "{}"
    server.main.queue(refusal("Failed to call a function.", code="tool_use_failed"))
    complete(model, replace(ask(), tools=(LOOK,)))
    complete(model, replace(ask(schema=SCHEMA), tools=(LOOK,)))
    assert server.requests[-1].body["response_format"]["type"] == "json_schema" and "tools" in server.requests[-1].body


@pytest.mark.parametrize(
    "message",
    [
        {"content": {"topic": "tea"}},
        {"content": None, "reasoning_content": '{"topic": "tea"}'},
        {"content": None, "tool_calls": [{"id": "1", "function": {"name": "json", "arguments": '{"topic": "tea"}'}}]},
    ],
    ids=["object", "thoughts", "call"],
)
def test_json_is_found_where_a_server_puts_it(server, model, message):
    """Cloudflare parses it, vLLM takes it for thoughts, and proxies of Anthropic ask for it as the call of a tool."""
    server.main.queue(Json({"choices": [{"message": message, "finish_reason": "stop"}]}))
    assert complete(model, ask(schema=SCHEMA))[0] == '{"topic": "tea"}'


@pytest.mark.parametrize(
    "reply",
    [
        Status(500, "Internal Server Error"),
        refusal("Failed to parse input at pos 12: </tool_call>", 500),
        refusal('unexpected tokens remaining in message header: Some("to=functions.look")', 500),
        Text("", finish="function_call_filter: MALFORMED_FUNCTION_CALL"),
    ],
)
@pytest.mark.parametrize("asked", [replace(ask(), tools=(LOOK,)), ask(schema=SCHEMA)], ids=["tools", "schema"])
def test_a_server_that_fails_twice_at_tools_or_a_schema_is_asked_without_them(server, model, reply, asked):
    server.main.default = lambda body: reply if {"tools", "response_format"} & set(body) else '{"topic": "tea"}'
    for _ in range(2):  # another answer may not fail: nothing is learned of it
        assert complete(model, asked)[0] == '{"topic": "tea"}'
    assert len(server.requests) == 6 and model.supports_tools


def test_a_server_that_fails_twice_at_streams_is_asked_for_the_whole_answer(server, model):
    """As Portkey's gateway 1.15 does."""
    broken = Status(500, {"status": "failure", "message": "Something went wrong"})
    server.main.default = lambda body: broken if body["stream"] else "Hi."
    for _ in range(2):
        assert complete(model, ask(stream=True))[0] == "Hi."
    assert [request.body["stream"] for request in server.requests] == [True, True, False] * 2


UNPARSED = {"code": 500, "message": "The model produced output that does not match the expected peg-native format"}


@pytest.mark.parametrize("failure", [SseError(1, UNPARSED), CutStream(1)], ids=["llama.cpp", "cut"])
def test_json_that_breaks_off_within_its_stream_is_asked_for_again(server, model, failure):
    """Nobody has read its first half, so the tries are those of an answer that comes at once."""
    server.main.queue(failure, failure, '{"topic": "tea"}')
    events = list(model.answer(ask(stream=True, schema=SCHEMA)))
    assert text_of(events) == '{"topic": "tea"}'
    forms = ["response_format" in request.body for request in server.requests]
    assert forms == [True, True, isinstance(failure, CutStream)]


def test_tools_are_left_out_where_llama_cpp_fails_at_them(server, model):
    server.main.default = lambda body: refusal("tools param requires --jinja flag", 500) if "tools" in body else "Hi."
    assert complete(model, replace(ask(), tools=(LOOK,)))[0] == "Hi."
    assert not model.supports_tools


@pytest.mark.parametrize(
    "words",
    [
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "This model only support stream mode, please enable the stream parameter to access the model.",
    ],
)
def test_a_model_that_only_streams_is_asked_to(server, model, words):
    server.main.default = lambda body: "Hi." if body["stream"] else refusal(words)
    assert complete(model, ask())[0] == complete(model, ask())[0] == "Hi."
    assert [request.body["stream"] for request in server.requests] == [False, True, True]


def test_a_server_that_wants_text_in_each_message_gets_it(server, model):
    server.main.queue(refusal("messages[2].content: Input should be a valid string", 422))
    asked = ChatMessage("assistant", "", (ToolCall("c1", "look", "{}"),))
    complete(model, replace(ask(), messages=(*ask().messages, asked, ChatMessage("tool", "No.", tool_call_id="c1"))))
    assert server.requests[-1].body["messages"][2]["content"] == ""


@pytest.mark.parametrize(
    "words",
    [
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ],
)
def test_a_server_that_wants_thoughts_beside_calls_gets_empty_ones_where_there_are_none(server, model, words):
    server.main.queue(refusal(words))
    request = ask()
    request, thoughts = replace(request, tools=(LOOK,)), {"reasoning_content": "Look there."}
    asked = [ChatMessage("assistant", "", (ToolCall("c1", "look", "{}"),), thoughts=t) for t in (None, thoughts)]
    found = ChatMessage("tool", "No.", tool_call_id="c1")
    complete(model, replace(request, messages=(*request.messages, asked[0], found, asked[1], found)))
    sent = [message.get("reasoning_content") for message in server.requests[-1].body["messages"]]
    assert sent == [None, None, "", None, "Look there.", None], "and what there is"
    assert model.supports_tools


def test_who_may_not_stream_gets_the_answer_at_once(server, model):
    words = "Your organization must be verified to stream this model."
    server.main.default = lambda body: refusal(words, param="stream") if body["stream"] else "Hi."
    assert complete(model, ask(stream=True))[0] == complete(model, ask(stream=True))[0] == "Hi."
    assert [request.body["stream"] for request in server.requests] == [True, False, False]
    assert "stream_options" not in server.requests[-1].body


DEVELOPER = ChatMessage("developer", "Be kind.", raw={"role": "developer", "content": "Be kind."})


@pytest.mark.parametrize(
    ("words", "roles"),
    [
        ("Input tag 'developer' found using 'role' does not match any of the expected tags", ["system", "user"]),
        ("System message must be at the beginning. None", ["system", "user"]),
        ("Conversation roles must alternate user/assistant/user/assistant/... None", ["system", "user"]),
        ("A conversation must start with a user message.", ["system", "user"]),
        ("user or tool message(s) should alternate with assistant message(s).", ["system", "user"]),
        ("System role not supported None", ["user"]),
        ("Error: Jinja Exception: Invalid system message", ["system", "user"]),
        ("Only system, user, assistant, and tool roles are supported!", ["system", "user"]),
    ],
)
@pytest.mark.parametrize("status", [400, 500], ids=["refused", "failed"])
def test_roles_go_as_the_server_takes_them(server, model, words, roles, status):
    server.main.queue(refusal(words, status))
    request = ask()
    system, question = request.messages
    complete(model, replace(request, messages=(system, question, DEVELOPER, ChatMessage("user", "And?"))))
    sent = server.requests[-1].body["messages"]
    assert [message["role"] for message in sent] == roles
    words_sent = "\n".join(message["content"] for message in sent)
    assert all(words in words_sent for words in ("Be brief.", "Be kind.", "how are you", "And?"))


JINJA = (
    "Unable to generate parser for this template. Automatic parser generation failed: \n------------\nWhile executing "
    'CallExpression at line 91, column 40 in source:\n...{%- if loop.index0 %}{{- raise_exception("... \n'
    "WHERE\nError: Jinja Exception: WHY"
)
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
REFUSALS_OF_CALLS = {  # by templates of chats: Llama 3's, Mistral's, Gemma 2's
    "one call": lambda sent: (
        any(len(one.get("tool_calls", "")) > 1 for one in sent) and "only single tool-calls at once"
    ),
    "ids": lambda sent: any("tool_calls" in one for one in sent) and "Tool call IDs should be alphanumeric strings",
    "no calls": lambda sent: any(one["role"] == "tool" for one in sent) and ALTERNATE,
    "no system": lambda sent: (
        (sent[0]["role"] == "system" and "System role not supported")
        or (any(one["role"] == "tool" for one in sent) and ALTERNATE)
    ),
}


@pytest.mark.parametrize("refuse", REFUSALS_OF_CALLS.values(), ids=REFUSALS_OF_CALLS)
@pytest.mark.parametrize("words", ["WHY", JINJA], ids=["vllm", "llama.cpp"])
def test_calls_that_a_template_does_not_take_are_told_as_text(server, model, refuse, words):
    def strict(body: Body) -> Any:
        why = refuse(body["messages"])
        return refusal(words.replace("WHY", why)) if why else "Fine."

    server.main.default = strict
    calls = ChatMessage("assistant", "", (ToolCall("a1", "look", '{"at": "tea"}'), ToolCall("a2", "look", "{}")))
    results = [ChatMessage("tool", text, tool_call_id=id) for text, id in (("Green tea.", "a1"), ("Nothing.", "a2"))]
    asked = replace(ask(), tools=(LOOK,), messages=(*ask().messages, calls, *results))
    assert complete(model, asked)[0] == complete(model, asked)[0] == "Fine."
    sent = server.requests[-1].body
    assert len(server.requests) < 6 and sent == server.requests[-2].body and "tools" in sent
    assert [one["role"] for one in sent["messages"]][-3:] == ["user", "assistant", "user"]
    assert sent["messages"][-2]["content"] == 'I call look with {"at": "tea"}.\n\nI call look with {}.'
    assert sent["messages"][-1]["content"] == "Result of look:\n\nGreen tea.\n\nResult of look:\n\nNothing."


def test_of_long_words_of_a_server_the_end_is_shown_too(server, model):
    server.main.queue(refusal(JINJA.replace("WHERE", "^" * 200).replace("WHY", "Invalid assistant block type: x")))
    message = failure(model, ask()).message
    assert "Unable to generate parser" in message and "Invalid assistant block type: x. Check" in message


def test_a_conversation_that_the_assistant_begins_is_taken(server, model):
    server.main.queue(refusal("Conversation roles must alternate user/assistant/user/assistant/..."))
    system, question = ask().messages
    complete(model, ModelRequest((system, ChatMessage("assistant", "Welcome!"), question)))
    assert [one["role"] for one in server.requests[-1].body["messages"]] == ["system", "user", "assistant", "user"]


def test_turns_without_a_system_message_are_tried_at_last(server, model):
    """Mistral's first templates count the system message as a turn."""
    words = "Conversation roles must alternate user/assistant/user/assistant/..."
    server.main.default = lambda body: refusal(words) if body["messages"][0]["role"] == "system" else "Hi."
    assert complete(model, ask())[0] == "Hi."
    (only,) = server.requests[-1].body["messages"]
    assert only["role"] == "user" and "Be brief." in only["content"]


def test_a_message_with_an_image_is_joined_with_its_neighbours_too(server, model):
    """Gemma 2's template at vLLM: the system message goes before the person's words, in one message."""
    server.main.default = lambda body: "Hi." if len(body["messages"]) == 1 else refusal("System role not supported")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}}
    shown = ChatMessage("user", "Look", raw={"role": "user", "content": [{"type": "text", "text": "Look"}, picture]})
    complete(model, ModelRequest((ask().messages[0], shown)))
    (only,) = server.requests[-1].body["messages"]
    texts = [{"type": "text", "text": text} for text in ("Be brief.", "Look")]
    assert only == {"role": "user", "content": [*texts, picture]}


def test_fields_of_messages_that_a_server_does_not_know_are_left_out(server, model):
    server.main.queue(Status(422, mistral_extra("messages.0.user.name")))
    named = ChatMessage("user", "Hi", raw={"role": "user", "content": "Hi", "name": "Ada"})
    complete(model, ModelRequest((named,)))
    assert server.requests[-1].body["messages"] == [{"role": "user", "content": "Hi"}]


# -- ends of answers


@both
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("content_filter: PROHIBITED_CONTENT", "content_filter"),
        ("end_turn", "stop"),
        ("eos", "stop"),
    ],
)
def test_ends_have_one_name(server, model, stream, theirs, ours):
    server.main.queue(Text("Half of it", finish=theirs))
    assert complete(model, ask(stream))[1].reason == ours


@both
@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_half_an_answer_that_ended_in_an_error_is_no_whole_one(server, model, stream, reason):
    server.main.default = lambda body: Text("Half of it", finish=reason)
    assert failure(model, ask(stream)).code == "model_failed"


def test_an_error_in_a_choice_is_one(server, model):
    broken = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "Gone"}}
    server.main.queue(Raw([data(chunk({"content": "Half"}), json.dumps({"choices": [broken]}).encode(), b"[DONE]")]))
    parts = model.answer(ask(stream=True))
    assert next(parts) == TextDelta("Half")
    with pytest.raises(ModelError, match="Gone"):
        list(parts)


# -- thoughts
