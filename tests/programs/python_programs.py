"""Drive a program for Python: `python python_programs.py NAME URL KEY` prints what it can do, as a line of JSON.

It runs in the environment of the programs, where nothing of Recap is. A check is True, or says what went wrong.
"""

import asyncio
import json
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel

MODEL = "recap"
TELL, ASK = "My cat is called Miso.", "What is my cat called?"
HELLO, WEATHER, PLACE = "Say hello.", "Is it warm in Lyon?", "Which city is meant?"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Place(BaseModel):
    """A city and how warm it is there."""

    city: str
    degrees: int


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"21 degrees in {city}"


class Program:
    """A program: what it answers, what its tools lead to, an object, and a stream's pieces with its output tokens."""

    package = ""

    def __init__(self, url: str, key: str, user: str) -> None:
        self.url, self.key, self.user = url, key, user


class ChatCompletions(Program):
    """Program that is asked for chat completions by its `create`, and answers in their form."""

    def say(self, text: str) -> str:
        return str(self.create([{"role": "user", "content": text}]).choices[0].message.content)

    def tools(self) -> str:
        tools = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
        messages: Any = [{"role": "user", "content": WEATHER}]
        message = self.create(messages, tools=tools).choices[0].message
        (call,) = message.tool_calls
        result = weather(**json.loads(call.function.arguments))
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": result}]
        return str(self.create(messages, tools=tools).choices[0].message.content)

    def stream(self) -> tuple[list[str], int]:
        pieces, tokens = [], 0
        messages = [{"role": "user", "content": HELLO}]
        for chunk in self.create(messages, stream=True, stream_options={"include_usage": True}):
            pieces += [choice.delta.content for choice in chunk.choices if choice.delta.content]
            usage = getattr(chunk, "usage", None)
            tokens = usage.completion_tokens if usage else tokens
        return pieces, tokens


class OpenAIChat(ChatCompletions):
    package = "openai"

    def __init__(self, *args: str) -> None:
        super().__init__(*args)
        from openai import OpenAI

        self.client = OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0)

    def create(self, messages: Any, **more: Any) -> Any:
        return self.client.chat.completions.create(model=MODEL, user=self.user, messages=messages, **more)

    def structured(self) -> Any:
        messages: Any = [{"role": "user", "content": PLACE}]
        answer = self.client.chat.completions.parse(
            model=MODEL, user=self.user, messages=messages, response_format=Place
        )
        return answer.choices[0].message.parsed


class OpenAIResponses(OpenAIChat):
    def create(self, messages: Any, **more: Any) -> Any:
        return self.client.responses.create(model=MODEL, user=self.user, input=messages, **more)

    def say(self, text: str) -> str:
        return str(self.create(text).output_text)

    def tools(self) -> str:
        tools = [{"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}]
        first = self.create(WEATHER, tools=tools)
        (call,) = (item for item in first.output if item.type == "function_call")
        result = {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": weather(**json.loads(call.arguments)),
        }
        return str(self.create([result], tools=tools, previous_response_id=first.id).output_text)

    def structured(self) -> Any:
        return self.client.responses.parse(model=MODEL, user=self.user, input=PLACE, text_format=Place).output_parsed

    def stream(self) -> tuple[list[str], int]:
        with self.client.responses.stream(model=MODEL, user=self.user, input=HELLO) as events:
            pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
            return pieces, events.get_final_response().usage.output_tokens


class Anthropic(Program):
    package = "anthropic"

    def __init__(self, *args: str) -> None:
        super().__init__(*args)
        from anthropic import Anthropic as Client

        self.client = Client(base_url=self.url, api_key=self.key, max_retries=0)
        self.common: Any = {"model": MODEL, "max_tokens": 500, "metadata": {"user_id": self.user}}

    def create(self, messages: Any, **more: Any) -> Any:
        return self.client.messages.create(messages=messages, **self.common, **more)

    def say(self, text: str) -> str:
        return str(self.create([{"role": "user", "content": text}]).content[0].text)

    def tools(self) -> str:
        tools = [{"name": "weather", "input_schema": PARAMETERS}]
        messages: Any = [{"role": "user", "content": WEATHER}]
        answer = self.create(messages, tools=tools)
        (call,) = (block for block in answer.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": weather(**call.input)}
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
        return str(self.create(messages, tools=tools).content[0].text)

    def structured(self) -> Any:
        messages: Any = [{"role": "user", "content": PLACE}]
        return self.client.messages.parse(messages=messages, output_format=Place, **self.common).parsed_output

    def stream(self) -> tuple[list[str], int]:
        messages: Any = [{"role": "user", "content": HELLO}]
        with self.client.messages.stream(messages=messages, **self.common) as stream:
            pieces = list(stream.text_stream)
            return pieces, stream.get_final_message().usage.output_tokens


class LangChainOpenAI(Program):
    package = "langchain-openai"

    def __init__(self, *args: str) -> None:
        super().__init__(*args)
        self.chat = self.make()

    def make(self) -> Any:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model=MODEL,
            base_url=f"{self.url}/v1",
            api_key=self.key,
            max_retries=0,
            model_kwargs={"user": self.user},
            stream_usage=True,
        )

    def say(self, text: str) -> str:
        return str(self.chat.invoke(text).text)

    def tools(self) -> str:
        from langchain_core.messages import HumanMessage
        from langchain_core.tools import tool

        tools = [tool(weather)]
        chat = self.chat.bind_tools(tools)
        messages: Any = [HumanMessage(WEATHER)]
        messages.append(chat.invoke(messages))
        messages.append(tools[0].invoke(messages[-1].tool_calls[0]))
        return str(chat.invoke(messages).text)

    def structured(self) -> Any:
        return self.chat.with_structured_output(Place).invoke(PLACE)

    def stream(self) -> tuple[list[str], int]:
        pieces = list(self.chat.stream(HELLO))
        whole = sum(pieces[1:], pieces[0])
        return [str(piece.text) for piece in pieces if piece.text], whole.usage_metadata["output_tokens"]


class LangChainAnthropic(LangChainOpenAI):
    package = "langchain-anthropic"

    def make(self) -> Any:
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(
            model=MODEL,
            base_url=self.url,
            api_key=self.key,
            max_retries=0,
            max_tokens=500,
            default_headers={"X-OpenWebUI-User-Id": self.user},  # it has no parameter for `metadata`
        )


class PydanticAI(Program):
    package = "pydantic-ai-slim"

    def agent(self, **more: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=f"{self.url}/v1", api_key=self.key)
        settings: Any = {"openai_user": self.user}
        return Agent(OpenAIChatModel(MODEL, provider=provider), model_settings=settings, **more)

    def say(self, text: str) -> str:
        return str(self.agent().run_sync(text).output)

    def tools(self) -> str:
        return str(self.agent(tools=[weather]).run_sync(WEATHER).output)

    def structured(self) -> Any:
        return self.agent(output_type=Place).run_sync(PLACE).output

    def stream(self) -> tuple[list[str], int]:
        async def streamed() -> tuple[list[str], int]:
            async with self.agent().run_stream(HELLO) as result:
                pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
                usage = result.usage() if callable(result.usage) else result.usage
                return pieces, usage.output_tokens

        return asyncio.run(streamed())


class PydanticAIAnthropic(PydanticAI):
    def agent(self, **more: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(base_url=self.url, api_key=self.key)
        settings: Any = {"anthropic_metadata": {"user_id": self.user}, "max_tokens": 500}
        return Agent(AnthropicModel(MODEL, provider=provider), model_settings=settings, **more)


class OpenAIAgents(Program):
    package = "openai-agents"

    def agent(self, **more: Any) -> Any:
        from agents import Agent, ModelSettings, OpenAIResponsesModel
        from openai import AsyncOpenAI

        client = AsyncOpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0)
        settings = ModelSettings(extra_body={"user": self.user}, include_usage=True)
        return Agent(name="Tea", model=OpenAIResponsesModel(MODEL, client), model_settings=settings, **more)

    def run(self, text: str, **more: Any) -> Any:
        from agents import RunConfig, Runner

        return Runner.run_sync(self.agent(**more), text, run_config=RunConfig(tracing_disabled=True)).final_output

    def say(self, text: str) -> str:
        return str(self.run(text))

    def tools(self) -> str:
        from agents import function_tool

        return str(self.run(WEATHER, tools=[function_tool(weather)]))

    def structured(self) -> Any:
        return self.run(PLACE, output_type=Place)

    def stream(self) -> tuple[list[str], int]:
        from agents import RunConfig, Runner

        async def streamed() -> tuple[list[str], int]:
            pieces = []
            result = Runner.run_streamed(self.agent(), HELLO, run_config=RunConfig(tracing_disabled=True))
            async for event in result.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    pieces.append(event.data.delta)
            return pieces, result.context_wrapper.usage.output_tokens

        return asyncio.run(streamed())


class LiteLLM(ChatCompletions):
    package = "litellm"

    def create(self, messages: Any, **more: Any) -> Any:
        from litellm import completion

        named = {"user": self.user}  # in extra_body, for LiteLLM sends `user` only for models that it knows
        base = {"api_base": f"{self.url}/v1", "api_key": self.key, "extra_body": named, "max_retries": 0}
        return completion(model=f"openai/{MODEL}", messages=messages, **base, **more)

    def structured(self) -> Any:
        answer = self.create([{"role": "user", "content": PLACE}], response_format=Place)
        return Place.model_validate_json(answer.choices[0].message.content)


class LlamaIndex(Program):
    package = "llama-index-llms-openai-like"

    def __init__(self, *args: str) -> None:
        super().__init__(*args)
        from llama_index.llms.openai_like import OpenAILike

        self.llm: Any = OpenAILike(
            model=MODEL,
            api_base=f"{self.url}/v1",
            api_key=self.key,
            is_chat_model=True,
            is_function_calling_model=True,
            max_retries=0,
            additional_kwargs={"user": self.user},
        )

    def say(self, text: str) -> str:
        from llama_index.core.llms import ChatMessage

        return str(self.llm.chat([ChatMessage(role="user", content=text)]).message.content)

    def tools(self) -> str:
        from llama_index.core.agent.workflow import FunctionAgent

        async def run() -> str:
            return str(await FunctionAgent(tools=[weather], llm=self.llm).run(WEATHER))

        return asyncio.run(run())

    def structured(self) -> Any:
        from llama_index.core.llms import ChatMessage

        return self.llm.as_structured_llm(Place).chat([ChatMessage(role="user", content=PLACE)]).raw

    def stream(self) -> tuple[list[str], int]:
        from llama_index.core.llms import ChatMessage

        answers = list(
            self.llm.stream_chat([ChatMessage(role="user", content=HELLO)], stream_options={"include_usage": True})
        )
        usage = answers[-1].raw.usage
        return [answer.delta for answer in answers if answer.delta], usage.completion_tokens


class Mcp(Program):
    """An MCP client: it `remembers` by tools, and what a tool answers is checked against its outputSchema."""

    package = "mcp"

    def check(self) -> dict[str, Any]:
        return asyncio.run(self.checked())

    async def checked(self) -> dict[str, Any]:
        import httpx2
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {self.key}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            address = f"{self.url}/mcp?user_id={self.user}"
            async with Client(streamable_http_client(address, http_client=http)) as client:
                return await used(client.call_tool, (await client.list_tools()).tools)


class FastMcp(Mcp):
    package = "fastmcp"

    async def checked(self) -> dict[str, Any]:
        from fastmcp import Client
        from fastmcp.client.transports import StreamableHttpTransport

        headers = {"Authorization": f"Bearer {self.key}"}
        async with Client(StreamableHttpTransport(f"{self.url}/mcp?user_id={self.user}", headers=headers)) as client:
            return await used(client.call_tool, await client.list_tools())


async def used(call: Callable[..., Any], tools: list[Any]) -> dict[str, Any]:
    fact = {"text": "Their cat is called Miso.", "quote": TELL}
    added = await call("add_memory", fact)
    found = await call("search_memories", {"query": "cat"})
    text = " ".join(getattr(block, "text", "") for block in found.content)
    data = next(
        (value for name in ("structuredContent", "structured_content") if (value := getattr(found, name, None))), None
    )
    return {
        "works": len(tools) > 5 or f"{len(tools)} tools",
        "remembers": "Miso" in text or text or str(added),
        "tools": True,
        "structured": "Miso" in str(data) or f"structuredContent: {data}",
        "usage": None,
    }


PROGRAMS: dict[str, type[Program]] = {
    "openai, chat completions": OpenAIChat,
    "openai, responses": OpenAIResponses,
    "anthropic": Anthropic,
    "langchain-openai": LangChainOpenAI,
    "langchain-anthropic": LangChainAnthropic,
    "pydantic-ai, OpenAI": PydanticAI,
    "pydantic-ai, Anthropic": PydanticAIAnthropic,
    "openai-agents": OpenAIAgents,
    "litellm": LiteLLM,
    "llama-index": LlamaIndex,
    "mcp": Mcp,
    "fastmcp": FastMcp,
}


def attempt(check: Callable[[], bool | str]) -> bool | str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - whatever a program raises is what the table tells
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"[:300]


def checked(program: Program) -> dict[str, Any]:
    if isinstance(program, Mcp):
        return program.check()

    def remembers() -> bool | str:
        program.say(TELL)
        answer = program.say(ASK)
        return "Miso" in answer or answer

    def structured() -> bool | str:
        found = program.structured()
        return found == Place(city="Lyon", degrees=21) or repr(found)

    def usage() -> bool | str:
        pieces, tokens = program.stream()
        return (len(pieces) > 1 and tokens > 0) or f"{len(pieces)} pieces, {tokens} tokens"

    return {
        "works": attempt(lambda: (said := program.say(HELLO)) == "Hello to you." or said),
        "remembers": attempt(remembers),
        "tools": attempt(lambda: "21" in (said := program.tools()) or said),
        "structured": attempt(structured),
        "usage": attempt(usage),
    }


if __name__ == "__main__":
    name, url, key = sys.argv[1:]
    kind = PROGRAMS[name]
    found = checked(kind(url, key, name.replace(", ", "-").replace(" ", "-")))
    print(json.dumps({"version": version(kind.package), **found}))
