"""Examples."""

import json
from typing import Any

from marshmallow import Schema, ValidationError, post_load

from schemas import fields
from schemas.shapes import CallerQuery, Input

INPUT_CHARS, OUTPUT_CHARS = 4_000, 8_000
STEPS_MAX = 50  # messages of an example
BEST = 5  # the highest rating
_RATING = "How good the answer is, from 1 to 5. Of similar examples the best rated come first."


class CalledFunction(Input):
    name = fields.text(1, 128, required=True)
    arguments = fields.Text(load_default="{}", about="As JSON.")


class ToolCall(Input):
    id = fields.Text()
    type = fields.one_of("function", load_default="function")
    function = fields.Nested(CalledFunction, required=True)


class ExampleMessage(Input):
    """Message of an example, in the form of the OpenAI protocol."""

    role = fields.one_of("user", "assistant", "tool", required=True)
    content = fields.Text(load_default="", allow_none=True)
    tool_calls = fields.Items(fields.Nested(ToolCall), STEPS_MAX)
    tool_call_id = fields.Text(about="The call whose result a tool's message is.")


class Example(Schema):
    id = fields.Integer()
    input = fields.String()
    output = fields.String()
    messages = fields.List(
        fields.Nested(ExampleMessage),
        about="From the message to the answer, where tools were called in between. Empty for most.",
    )
    tags = fields.List(fields.String())
    rating = fields.Integer(about=_RATING)
    created_at = fields.UtcDateTime()


class ExampleCreate(CallerQuery):
    """Example: `input` and `output`; or `messages`; or `session_id` and `message_id` of an exchange."""

    input = fields.text(1, INPUT_CHARS)
    output = fields.text(1, OUTPUT_CHARS)
    messages = fields.Items(
        fields.Nested(ExampleMessage), STEPS_MAX, least=2, about="A message, calls of tools, the answer."
    )
    session_id = fields.SessionId(about="With `message_id`, instead of `input` and `output`: an exchange.")
    message_id = fields.integer(1, about="The id of the exchange's message or of its reply.")
    tags = fields.Items(fields.text(1, 64), 20, load_default=())
    rating = fields.integer(1, BEST, load_default=BEST, about=_RATING)

    @post_load
    def _as_messages(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        fields_sent = data.keys() & {"input", "output", "messages", "session_id", "message_id"}
        if fields_sent not in ({"input", "output"}, {"messages"}, {"session_id", "message_id"}):
            raise ValidationError(
                "Send `input` and `output`, or `messages`, or `session_id` and `message_id` of an exchange.", "input"
            )

        messages = data.get("messages")
        roles = [message["role"] for message in messages or ()]
        if messages and (roles[0] != "user" or roles[-1] != "assistant" or not messages[0]["content"]):
            raise ValidationError("Begin with the user's words and end with a message of the assistant's.", "messages")
        if messages and len(json.dumps(messages)) > OUTPUT_CHARS:
            raise ValidationError(f"Have at most {OUTPUT_CHARS:,} characters as JSON together.", "messages")
        if "input" in data:
            texts = {"user": data.pop("input"), "assistant": data.pop("output")}
            data["messages"] = [{"role": role, "content": content} for role, content in texts.items()]
        return data
