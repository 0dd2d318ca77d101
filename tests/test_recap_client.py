"""The Python client in frameworks over HTTP: LangGraph's store beside its own in memory, OpenAI's Agents, LangChain."""

import asyncio
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.memory import Session, SessionSettings
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
)
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from recap_client import RecapError
from recap_client.agents import RecapSession
from recap_client.langchain import RecapChatMessageHistory, RecapRetriever
from recap_client.langgraph import RecapStore
from tests.application import an_app
from tests.http import append, good, said
from tests.live import Live

LABELS = st.sampled_from(["a", "b", "a-b", "é"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "l", "m"])
LEAVES = st.none() | st.text("xyz", max_size=2) | st.integers(2, 9) | st.floats(2, 9)  # to Python, True is 1
VALUES = st.dictionaries(
    st.sampled_from(["n", "m"]), LEAVES | st.dictionaries(KEYS, LEAVES, max_size=2) | st.lists(LEAVES, max_size=2)
)
NUMBERED = st.fixed_dictionaries({"size": st.integers(2, 9)}, optional={"n": LEAVES})
ORDERED = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.integers(2, 9), min_size=1, max_size=2)
EQUAL = st.dictionaries(st.sampled_from(["$eq", "$ne"]), LEAVES, min_size=1, max_size=2)
FILTERS = st.fixed_dictionaries({}, optional={"size": ORDERED, "n": EQUAL | LEAVES, "m": LEAVES})
PATHS = st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)
CONDITIONS = st.tuples(PATHS, PATHS).map(
    lambda both: (MatchCondition("prefix", both[0]), MatchCondition("suffix", both[1]))
)
PUTS = st.tuples(NAMESPACES, KEYS, st.builds(dict.__or__, VALUES, NUMBERED) | st.none())
SEARCHES = st.tuples(st.lists(LABELS, max_size=2).map(tuple), st.none() | FILTERS, st.just(100))
LISTINGS = st.tuples(st.none() | CONDITIONS, st.none() | st.integers(1, 3), st.integers(1, 5), st.integers(0, 2))
OPS: st.SearchStrategy[Op] = st.one_of(
    PUTS.map(lambda given: PutOp(*given)),
    st.tuples(NAMESPACES, KEYS).map(lambda given: GetOp(*given)),
    SEARCHES.map(lambda given: SearchOp(*given)),
    LISTINGS.map(lambda given: ListNamespacesOp(*given)),
)


@pytest.fixture(scope="module")
def live(tmp_path_factory, migrated):
    with an_app(tmp_path_factory.mktemp("clients"), migrated) as app:
        running = Live(lambda: app)
        yield running
        running.stop()


@pytest.fixture
def name():
    return f"p-{uuid.uuid4().hex}"


# -- LangGraph


def plain(result: Any) -> Any:
    """A result without times; items of a search in no order, which LangGraph leaves to each store."""
    if isinstance(result, Item):
        return result.namespace, result.key, result.value
    if isinstance(result, list) and result and isinstance(result[0], Item):
        return sorted(map(plain, result), key=repr)
    return result


def expected(other: InMemoryStore, ops: list[Op]) -> list[Any]:
    """What the store in memory answers, with listings by a copy: it lists namespaces that it was only asked for too."""
    copy = InMemoryStore()
    for item in other.search((), limit=1000):
        copy.put(item.namespace, item.key, item.value)
    listed = copy.batch([op for op in ops if isinstance(op, ListNamespacesOp)])
    rest = other.batch([op for op in ops if not isinstance(op, ListNamespacesOp)])
    return [listed.pop(0) if isinstance(op, ListNamespacesOp) else plain(rest.pop(0)) for op in ops]


@settings(max_examples=60)
@given(batches=st.lists(st.lists(OPS, min_size=1, max_size=6), min_size=1, max_size=6), sync=st.booleans())
def test_the_store_does_what_langgraphs_own_does(live, batches, sync):
    store, other = RecapStore(live.url, user_id=f"p-{uuid.uuid4().hex}"), InMemoryStore()
    for ops in batches:
        found = store.batch(ops) if sync else asyncio.run(store.abatch(ops))
        assert list(map(plain, found)) == expected(other, ops), ops
    store.close()


def test_a_store_pages_expires_and_answers_queries(live, name):
    store = RecapStore(live.url, user_id=name, fields=["notes[*].text"])
    for number in range(5):
        store.put(("docs",), str(number), {"n": number, "notes": [{"text": f"tea number {number}"}], "other": "jam"})
    pages = [[item.key for item in store.search(("docs",), limit=2, offset=at)] for at in (0, 2, 4)]
    assert pages == [["4", "3"], ["2", "1"], ["0"]], "the newest first"
    (found,) = store.search((), query="tea number 3", limit=1)
    assert found.key == "3" and found.score
    assert all(item.score < found.score for item in store.search((), query="jam")), "it is in no indexed field"
    store.put(("docs",), "short", {}, ttl=5)
    first = good(live.client.get(f"/api/store/items?namespace=docs&key=short&user_id={name}&refresh=false"))
    assert store.get(("docs",), "short", refresh_ttl=False) is not None and first["refresh_on_read"]
    assert store.get(("docs",), "short") is not None
    second = good(live.client.get(f"/api/store/items?namespace=docs&key=short&user_id={name}&refresh=false"))
    assert second["expires_at"] > first["expires_at"], "reading it begins its time anew"
    with pytest.raises(RecapError) as refused:
        store.batch([PutOp(("docs",), "fine", {}), PutOp(("docs",), "large", {"text": "x" * 70_000})])
    assert (refused.value.status, refused.value.code) == (422, "invalid_fields")
    assert store.get(("docs",), "fine") is None


def test_filters_compare_with_numbers_that_json_does_not_have(live, name):
    for wanted in [
        {"n": {"$lt": 10**400}},
        {"n": {"$gt": float("-inf"), "$lt": float("inf")}},
        {"n": {"$gt": -(10**100)}},
    ]:
        store = RecapStore(live.url, user_id=name)
        store.put(("docs",), "k", {"n": 2, "text": "tea"})
        assert [item.key for item in store.search((), filter=wanted)] == ["k"]
        for nothing in ({"n": {"$eq": float("nan")}}, {"n": float("nan")}, {"text": "tea\0"}):
            assert store.search((), filter=nothing) == []


# -- the OpenAI Agents SDK


@function_tool
def boil(litres: int) -> str:
    """Boil water."""
    return f"{litres} litres boil"


def run(model: ScriptedModel, words: str, session: RecapSession, **more: Any) -> str:
    agent = Agent(name="Tea", model=model, tools=[boil])
    config = RunConfig(tracing_disabled=True, **more)
    return str(asyncio.run(Runner.run(agent, words, session=session, run_config=config)).final_output)


def test_an_agent_goes_on_where_it_stopped_and_its_words_are_remembered(live, name):
    replies = assistant_message("The water boils."), assistant_message("Green tea, as always.")
    outputs = function_call("boil", {"litres": 2}, call_id="c1"), *replies
    model = ScriptedModel([ModelStep(output=[output]) for output in outputs])
    assert run(model, "Boil water for my oolong.", RecapSession("tea", live.url, user_id=name)) == "The water boils."
    session = RecapSession("tea", live.url, user_id=name)
    assert isinstance(session, Session)
    assert run(model, "And now?", session) == "Green tea, as always."
    sent: Any = model.calls[-1].input
    kinds = ["user", "function_call", "function_call_output", "message", "user"]
    assert [item.get("type", item.get("role")) for item in sent] == kinds
    assert sent[1]["call_id"] == sent[2]["call_id"] == "c1" and sent[2]["output"] == "2 litres boil"
    assert asyncio.run(session.get_items())[: len(sent)] == sent, "each item is what it was"
    messages = good(live.client.get("/api/sessions/tea/messages"))["items"]
    assert [(one["role"], one["content"]) for one in messages][:4] == [
        ("user", "Boil water for my oolong."),
        ("assistant", 'boil({"litres":2})'),
        ("tool", "2 litres boil"),
        ("assistant", "The water boils."),
    ]
    assert good(live.client.get(f"/api/search?q=oolong&user_id={name}"))["results"]


def test_the_latest_items_come_in_their_order_and_a_corrupt_one_hides_no_other(live, name):
    session = RecapSession(name, live.url, user_id=name)
    items: list[Any] = [{"role": "user", "content": f"Message {number}"} for number in range(130)]
    assert asyncio.run(session.get_items()) == []
    asyncio.run(session.add_items(items[:-1]))
    corrupt = [said("odd", extra={"agents_item": 7}), said("odder", extra={"agents_item": {"n": 1}}), said("x", "tool")]
    append(live.client, name, [*corrupt, said("from elsewhere", "assistant")], user_id=name)
    asyncio.run(session.add_items(items[-1:]))
    items.insert(129, {"role": "assistant", "content": "from elsewhere"})
    for limit in (0, 1, 2, 3, 101, 500):
        assert asyncio.run(session.get_items(limit)) == (items[-limit:] if limit else [])
    assert asyncio.run(session.get_items()) == items
    shorter = RecapSession(name, live.url, user_id=name, session_settings=SessionSettings(limit=2))
    assert asyncio.run(shorter.get_items()) == items[-2:]
    shorter = RecapSession(name, live.url, user_id=name, session_settings={"limit": 3})
    assert asyncio.run(shorter.get_items()) == items[-3:]
    with pytest.raises(TypeError, match="limitt"):
        RecapSession(name, live.url, user_id=name, session_settings={"limitt": 3})
    assert [asyncio.run(session.pop_item()) for _ in range(3)] == items[:-4:-1]
    assert asyncio.run(session.get_items(1)) == items[127:128]


def test_a_batch_is_stored_whole_or_not_at_all_and_a_session_can_be_cleared(live, name):
    session = RecapSession(name, live.url, user_id=name)
    with pytest.raises(RecapError) as refused:
        asyncio.run(session.add_items([{"role": "user", "content": "fine"}] * 1001))
    assert refused.value.status == 422 and asyncio.run(session.get_items()) == []
    asyncio.run(session.add_items([]))
    asyncio.run(session.add_items([{"role": "user", "content": "fine"}]))
    for _ in range(2):
        asyncio.run(session.clear_session())
        assert asyncio.run(session.get_items()) == [] and asyncio.run(session.pop_item()) is None


HARD = "half \ud83d, nul \0, a smile \ud83d\ude00"  # a smile in two halves, as a careless decoder leaves it
MENDED = "half \ufffd, nul , a smile 😀"


def test_frameworks_texts_that_no_database_takes_break_no_run_and_large_items_stay_whole(live, name):
    session = RecapSession(name, live.url, user_id=name)
    large: Any = [
        {"type": "function_call_output", "call_id": "c1", "output": "page " * 50_000},
        {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{'A' * 300_000}"}]},
    ]
    asyncio.run(session.add_items([*large, {"role": "user", "content": HARD}]))
    assert asyncio.run(session.get_items()) == [*large, {"role": "user", "content": MENDED}]
    assert len(good(live.client.get(f"/api/sessions/{name}/messages"))["items"][0]["content"]) == 100_000
    history = RecapChatMessageHistory(f"{name}-h", live.url, user_id=name)
    history.add_messages([ToolMessage("page " * 50_000, tool_call_id="c1"), HumanMessage(HARD)])
    assert history.messages == [ToolMessage("page " * 50_000, tool_call_id="c1"), HumanMessage(MENDED)]
    assert len(RecapRetriever(base_url=live.url, user_id=name, k=1).invoke(HARD)) == 1
    store = RecapStore(live.url, user_id=name)
    store.put(("docs",), "k", {"text": HARD})
    assert [item.value for item in store.search((), query=f"{HARD} {'tea ' * 1000}")] == [{"text": MENDED}]
    assert store.search((), filter={"text": "half \ud83d"}) == []


# -- LangChain: its own tests of a retriever, as they are, and a history


@pytest.fixture(scope="module")
def tea(live):
    append(live.client, "green-tea", [said(f"Green tea number {number}") for number in range(5)], user_id="ada")


@pytest.mark.anyio
class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _served(self, live, tea):
        self.params = {"base_url": live.url, "user_id": "ada"}

    @pytest.fixture
    def anyio_backend(self):
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


@pytest.mark.usefixtures("tea")
def test_a_document_says_where_it_is_from(live):
    good(live.client.post("/api/facts", json={"text": "Ada drinks oolong.", "user_id": "ada"}))
    (found,) = RecapRetriever(base_url=live.url, user_id="ada", session_id="green-tea", k=1).invoke("tea number 3")
    assert found.page_content == "Green tea number 3"
    assert (found.metadata["session_id"], found.metadata["role"]) == ("green-tea", "user")
    (fact,) = RecapRetriever(base_url=live.url, user_id="ada", kind="fact").invoke("oolong")
    assert (fact.page_content, fact.metadata["kind"]) == ("Ada drinks oolong.", "fact")
    assert RecapRetriever(base_url=live.url, user_id="bob").invoke("x " * 2000) == []


def test_a_history_gives_back_what_it_got_and_its_words_are_remembered(live, name):
    history = RecapChatMessageHistory(name, live.url, user_id=name)
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
    stored = good(live.client.get(f"/api/sessions/{name}/messages"))["items"]
    assert [(one["role"], one["content"]) for one in stored] == [
        ("system", "Be brief."),
        ("user", "Boil water for my oolong."),
        ("assistant", "boil({'litres': 2})"),
        ("tool", "2 litres boil"),
        ("assistant", "The water boils."),
    ]
    named = HumanMessage("Once.", id="m-1")
    history.add_messages([named, AIMessage("Yes.")])
    history.add_messages([named, AIMessage("Yes.")])
    messages += [named, AIMessage("Yes."), AIMessage("Yes.")]
    assert history.messages == messages
    corrupt = [said("odd", extra={"langchain_message": odd}) for odd in (7, {"type": "odd"})]
    append(live.client, name, [*corrupt, said("nobody's", "tool"), said("From elsewhere.")], user_id=name)
    assert history.messages == [*messages, HumanMessage("From elsewhere.")]
    history.add_messages([ChatMessage("My own words.", role="user"), HumanMessageChunk("Mine too.")])
    stored = good(live.client.get(f"/api/sessions/{name}/messages?order=desc&limit=2"))["items"]
    assert {one["role"] for one in stored} == {"user"}
    history.add_ai_message("Green.")
    assert history.messages[-1] == AIMessage("Green.")
    for _ in range(2):
        history.clear()
        assert history.messages == []


def test_the_documentation_does_what_it_says(live, capsys):
    page = Path(__file__).parents[1].joinpath("docs/clients.md").read_text("utf-8")
    codes = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    (code,) = (code for code in codes if "recap_client.langchain" in code)
    names: dict[str, Any] = {}
    code = code.replace("http://127.0.0.1:8000", live.url).replace('"ada"', '"grace"')
    exec(compile(code, "clients.md", "exec"), names)
    assert capsys.readouterr().out == "My cat is called Miso.\n"

    class Model:
        def invoke(self, messages: list[Any]) -> AIMessage:
            return AIMessage(f"{messages[0].content[:11]} {len(messages)}", id=messages[-1].content)

    talk: list[BaseMessage] = []
    for number in range(3):
        talk.append(HumanMessage(f"Question {number}", id=f"q{number}"))
        talk.append(names["answer"](Model(), talk))
    assert names["history"].messages[1:] == talk, "each is stored once"
    assert [message.content for message in talk[1::2]] == ["<memory now 2", "<memory now 4", "<memory now 6"]
