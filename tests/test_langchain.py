"""LangChain on a Recap server: its own tests of a retriever, as they are, and a history that gives back what it got."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_tests.integration_tests import RetrieversIntegrationTests

from recap_client.langchain import RecapChatMessageHistory, RecapRetriever
from tests.live import Live
from tests.resources import an_app, append, good, said


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Live]:
    with an_app(tmp_path_factory.mktemp("langchain"), migrated) as app:
        running = Live(lambda: app)
        append(running.client, "tea", [said(f"Green tea number {number}") for number in range(5)], user_id="ada")
        yield running
        running.stop()


@pytest.mark.anyio
class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _served(self, live: Live) -> None:
        self.params = {"base_url": live.url, "user_id": "ada"}

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @property
    def retriever_constructor(self) -> type[RecapRetriever]:
        return RecapRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.params

    @property
    def retriever_query_example(self) -> str:
        return "Which green tea?"


def test_a_document_says_where_it_is_from(live: Live) -> None:
    good(live.client.post("/api/facts", json={"text": "Ada drinks oolong.", "user_id": "ada"}))
    (found,) = RecapRetriever(base_url=live.url, user_id="ada", session_id="tea", k=1).invoke("tea number 3")
    assert found.page_content == "Green tea number 3"
    assert (found.metadata["session_id"], found.metadata["role"]) == ("tea", "user")
    (fact,) = RecapRetriever(base_url=live.url, user_id="ada", kind="fact").invoke("oolong")
    assert (fact.page_content, fact.metadata["kind"]) == ("Ada drinks oolong.", "fact")
    assert RecapRetriever(base_url=live.url, user_id="bob").invoke("x " * 2000) == []


def test_a_history_gives_back_what_it_got_and_its_words_are_remembered(live: Live) -> None:
    person = uuid.uuid4().hex
    history = RecapChatMessageHistory(person, live.url, user_id=person)
    assert isinstance(history, BaseChatMessageHistory) and history.messages == []
    call: Any = {"name": "boil", "args": {"litres": 2}, "id": "c1", "type": "tool_call"}
    messages = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "Boil water for my oolong."}], name="ada"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("2 litres boil", tool_call_id="c1"),
        AIMessage("The water boils.", response_metadata={"model": "tea"}),
    ]
    history.add_messages(messages)
    assert history.messages == messages == asyncio.run(history.aget_messages())
    stored = good(live.client.get(f"/api/sessions/{person}/messages"))["items"]
    assert [(one["role"], one["content"]) for one in stored] == [
        ("system", "Be brief."),
        ("user", "Boil water for my oolong."),
        ("assistant", "boil({'litres': 2})"),
        ("tool", "2 litres boil"),
        ("assistant", "The water boils."),
    ]
    corrupt = [said("odd", extra={"langchain_message": odd}) for odd in (7, {"type": "odd"})]
    append(live.client, person, [*corrupt, said("nobody's", "tool"), said("From elsewhere.")], user_id=person)
    assert history.messages == [*messages, HumanMessage("From elsewhere.")]
    history.add_ai_message("Green.")
    assert history.messages[-1] == AIMessage("Green.")
    for _ in range(2):
        history.clear()
        assert history.messages == []


def test_the_documentation_does_what_it_says(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[1].joinpath("docs/clients.md").read_text("utf-8")
    (code,) = (
        code for code in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "recap_client.langchain" in code
    )
    exec(compile(code.replace("http://127.0.0.1:8000", live.url).replace('"ada"', '"grace"'), "clients.md", "exec"), {})
    assert capsys.readouterr().out == "My cat is called Miso.\n"
