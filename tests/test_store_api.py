"""The store over HTTP: items, searches, namespaces, batches, and what is refused."""

import json
from typing import Any

from flask.testing import FlaskClient

from app import engine_of
from tests.application import rows_of
from tests.http import Body, error, good, read_all
from tests.test_auth import with_key
from tests.traces import traces

ITEMS = "/api/store/items"


def put(client: FlaskClient, namespace: str, key: str, value: Any, **more: Any) -> Body:
    return good(client.put(ITEMS, json={"namespace": namespace.split("."), "key": key, "value": value, **more}))


def search(client: FlaskClient, **body: Any) -> list[Any]:
    found = good(client.post("/api/store/search", json=body))["items"]
    return [(".".join(item["namespace"]), item["key"]) for item in found]


def namespaces(client: FlaskClient, **query: Any) -> list[str]:
    return [".".join(one) for one in good(client.get("/api/store/namespaces", query_string=query))["namespaces"]]


def batch(client: FlaskClient, *operations: Body, **more: Any) -> list[Body]:
    answered: list[Body] = good(client.post("/api/store/batch", json={"operations": operations, **more}))["results"]
    return answered


def test_an_item_is_stored_read_replaced_and_erased(client):
    first = put(client, "ada.notes", "tea", {"text": "Green tea"}, user_id="ada", ttl=5, refresh_on_read=True)
    name = {"namespace": "ada.notes", "key": "tea", "user_id": "ada"}
    read = good(client.get(ITEMS, query_string=name))
    assert {**read, "expires_at": ""} == {**first, "expires_at": ""} and read["expires_at"] > first["expires_at"]
    stored = {"namespace": ["ada", "notes"], "key": "tea", "value": {"text": "Green tea"}}
    assert read == read | {**stored, "version": 1, "ttl": 5.0, "refresh_on_read": True}
    second = put(client, "ada.notes", "tea", ["Xylozarquon"], user_id="ada", version=1)
    assert (second["version"], second["ttl"], second["expires_at"]) == (2, None, None)
    again = {"namespace": ["ada", "notes"], "key": "tea", "value": 1, "user_id": "ada", "version": 1}
    assert error(client.put(ITEMS, json=again), 409)["code"] == "item_changed"
    assert error(client.delete(ITEMS, query_string={**name, "version": 1}), 409)["code"] == "item_changed"
    receipt = good(client.delete(ITEMS, query_string=name))
    assert (receipt["erased"]["items"], receipt["pending"]) == (1, ["database_files"])
    assert (receipt["namespace"], receipt["key"]) == (["ada", "notes"], "tea")
    for answer in (client.get(ITEMS, query_string=name), client.delete(ITEMS, query_string=name)):
        assert error(answer, 404)["code"] == "item_not_found"
    engine = engine_of(client.application)
    engine.job_queue.run_now("scrub", "default")
    assert traces(engine.settings.data_dir, "Xylozarquon") == {}
    assert [job["kind"] for job in read_all(client, "/api/jobs")] == ["expire"]


def test_items_of_a_person_are_not_the_tenants_nor_another_persons(client):
    for user in ({}, {"user_id": "ada"}, {"user_id": "bob"}):
        put(client, "a", "k", user, **user)
    for user in ({}, {"user_id": "ada"}, {"user_id": "bob"}):
        assert good(client.get(ITEMS, query_string={"namespace": "a", "key": "k", **user}))["value"] == user
        assert len(search(client, **user)) == 1
    good(client.delete("/api/users/ada"))
    assert search(client, user_id="ada") == [] and len(search(client)) == len(search(client, user_id="bob")) == 1


def test_a_query_names_a_namespace_by_its_parts_or_with_dots_and_anything_else_once(client):
    put(client, "a", "k", {"n": 1})
    put(client, "a.b", "k", {"n": 2})
    for sent, n in (("a", 1), (["a"], 1), ("a.b", 2), (["a", "b"], 2)):
        assert good(client.get(ITEMS, query_string={"namespace": sent, "key": "k"}))["value"] == {"n": n}, sent
    error(client.delete(ITEMS, query_string={"namespace": ["a.b", "c"], "key": "k"}), 422)
    refused = error(client.delete(ITEMS, query_string={"namespace": "a", "key": ["k", "other"]}), 422)
    assert refused["fields"] == {"key": ["Not a valid string."]}
    assert error(client.get("/api/facts", query_string={"user_id": ["ada", "bob"]}), 422)["param"] == "user_id"
    assert len(search(client)) == 2


def test_a_search_finds_below_a_prefix_newest_first_in_pages(client):
    names = ["a", "a.b", "a.b.c", "a-b", "a.bc", "a/b", "b"]
    for number, name in enumerate(names):
        put(client, name, "k", {"n": number})
    put(client, "a", "k", {"n": 9})
    assert search(client) == [(name, "k") for name in ("a", "b", "a/b", "a.bc", "a-b", "a.b.c", "a.b")]
    assert search(client, namespace_prefix=["a"]) == [(name, "k") for name in ("a", "a.bc", "a.b.c", "a.b")]
    assert search(client, namespace_prefix=["a", "b"]) == [("a.b.c", "k"), ("a.b", "k")]
    assert search(client, namespace_prefix=["a"], limit=2, offset=1) == [("a.bc", "k"), ("a.b.c", "k")]
    assert search(client, filter={"n": {"$gt": 3, "$lt": 9}}, limit=2) == [("b", "k"), ("a/b", "k")]


def test_a_query_finds_by_words_and_meaning_in_the_chosen_fields(client):
    put(client, "notes", "kettle", {"title": "Kitchen", "parts": [{"text": "Kettles boil water"}, {"text": "Steam"}]})
    put(client, "notes", "garden", {"title": "Water the plants", "parts": [{"text": "Roses and tulips"}]})
    put(client, "notes", "ill", {"title": "Monday", "parts": ["The physician prescribed medicine"]})
    assert search(client, query="kettle")[0] == ("notes", "kettle")
    assert {key for _, key in search(client, query="water", limit=2)} == {"kettle", "garden"}
    assert search(client, query="water", fields=["parts[*].text"])[0] == ("notes", "kettle")
    assert search(client, query="water", fields=["title", "parts[1].text"])[0] == ("notes", "garden")
    assert search(client, query="water", filter={"title": "Kitchen"}) == [("notes", "kettle")]
    for query in ("doctor gave her medication", "doctor", "illness"):
        assert search(client, query=query)[0] == ("notes", "ill"), "by its meaning"
    ranked = good(client.post("/api/store/search", json={"query": "water roses"}))["items"]
    assert [item["key"] for item in ranked] == ["garden", "kettle", "ill"]
    scores = [item["score"] for item in ranked]
    assert 1 >= scores[0] > scores[1] > scores[2] >= 0
    assert search(client, query="water roses", offset=1) == [("notes", "kettle"), ("notes", "ill")]
    assert len(search(client, query=" ")) == 3, "a query of nothing is none"


def test_an_item_says_where_queries_look_in_it(client):
    value = {"title": "Green tea", "body": "Roses"}
    for key, index in (("title", ["title"]), ("body", ["body"]), ("nowhere", []), ("default", None)):
        assert put(client, "notes", key, value, index=index)["index"] == index
    found = good(client.post("/api/store/search", json={"query": "roses", "fields": ["title"]}))["items"]
    assert (found[0]["key"], found[0]["score"]) == ("body", 1.0)
    assert [item["key"] for item in found if item["score"] is None] == ["nowhere"]
    put(client, "notes", "nowhere", value)
    assert ("notes", "nowhere") in search(client, query="roses", limit=2), "a put replaces the paths as well"
    put(client, "notes", "exported", value, user_id="ada", index=[])
    export = good(client.get("/api/users/ada/export"))
    good(client.delete("/api/users/ada"))
    good(client.post("/api/import?user_id=ada", json=export))
    assert good(client.get(f"{ITEMS}?namespace=notes&key=exported&user_id=ada"))["index"] == []


def test_the_fields_of_a_query_are_paths(client):
    for field in ("a[x]", "a.", ".a", "a[0]b", "a]", "[*]"):
        refused = error(client.post("/api/store/search", json={"query": "tea", "fields": [field]}), 422)
        assert refused["param"] == "fields.0" and "notes[*].text" in refused["fields"]["fields.0"][0]


def test_namespaces_by_prefix_suffix_wildcard_and_depth(client):
    for name in ("users.ada.notes", "users.ada.tasks", "users.bob.notes", "users", "teams.x.y.notes"):
        put(client, name, "k", 1)
    put(client, "users.ada.notes", "other", 1)
    assert namespaces(client) == ["teams.x.y.notes", "users", "users.ada.notes", "users.ada.tasks", "users.bob.notes"]
    assert namespaces(client, prefix="users.*.notes") == ["users.ada.notes", "users.bob.notes"]
    assert namespaces(client, suffix="notes", max_depth=2) == ["teams.x", "users.ada", "users.bob"]
    assert namespaces(client, suffix="tasks", max_depth=50) == ["users.ada.tasks"], "deeper than a namespace can be"
    assert namespaces(client, prefix="*.ada", suffix="*.tasks") == ["users.ada.tasks"]
    assert namespaces(client, limit=2, offset=1) == ["users", "users.ada.notes"]


def test_a_batch_does_all_in_their_order_or_nothing(client):
    name = {"namespace": ["a"], "key": "k"}
    done = batch(
        client,
        {"op": "get", **name},
        {"op": "put", **name, "value": {"n": 1}},
        {"op": "search", "filter": {"n": 1}},
        {"op": "namespaces", "prefix": ["*"]},
        {"op": "delete", **name},
        {"op": "delete", **name},
    )
    assert done[0] == {"item": None} and done[1]["item"]["version"] == 1
    assert [item["key"] for item in done[2]["items"]] == ["k"] and done[3] == {"namespaces": [["a"]]}
    assert done[4:] == [{"erased": {"items": 1, "item_versions": 0}}, {"erased": {}}]
    first, second = batch(client, *({"op": "put", **name, "value": n, "version": n} for n in (0, 1)))
    assert (second["item"]["version"], second["item"]["created_at"]) == (2, first["item"]["created_at"])
    missing = {**name, "key": "missing"}
    for wrong in (
        *({"op": "put", **name, "value": 2, "version": version} for version in (0, 1, 7)),
        {"op": "delete", **name, "version": 1},
        {"op": "put", **missing, "value": 2, "version": 1},
    ):
        operations = {"operations": [{"op": "put", **name, "key": "other", "value": 1}, wrong]}
        assert error(client.post("/api/store/batch", json=operations), 409)["code"] == "item_changed"
    assert search(client) == [("a", "k")]
    assert good(client.get(ITEMS, query_string=name))["value"] == 1


def nested(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


OUT_OF_BOUNDS: dict[str, tuple[Any, ...]] = {
    "namespace": (
        *([], ["a"] * 9, ["a", ""], ["a.b"], ["x" * 128, "y" * 128], "a..b", ["a", 1], {"a": "b"}),
        ["recap", "profile"],  # which is the engine's
    ),
    "key": ("", "x" * 257, "\0"),
    "value": ("x" * (1 << 16), nested(52), {"a": float("inf")}, [2**63], {"a\0": 1}, ["\ud800"]),
    "version": (-1,),
    "ttl": (0, 1e9),
}


def test_what_is_out_of_bounds_is_refused_and_nothing_stored(client):
    for field, value in [(name, value) for name in OUT_OF_BOUNDS for value in OUT_OF_BOUNDS[name]]:
        body = {"namespace": ["a"], "key": "k", "value": 1, field: value}
        refused = error(client.put(ITEMS, data=json.dumps(body), content_type="application/json"), 422)
        assert refused["param"] == field and "Nothing was stored" in refused["message"]
        operations = {"operations": [{"op": "put", "namespace": ["a"], "key": "j", "value": 1}, {"op": "put", **body}]}
        refused = error(
            client.post("/api/store/batch", data=json.dumps(operations), content_type="application/json"), 422
        )
        assert refused["param"].startswith(field if value == ["recap", "profile"] else "operations.1")
        assert rows_of(engine_of(client.application))["items"] == 0


def test_a_batch_that_asks_for_too_much_is_refused(client):
    for operations in [
        [{"op": "search", "limit": 501}] * 2,
        [{"op": "search", "query": "tea", "limit": 1}] * 11,
        [{"op": "namespaces"}] * 101,
        [{"op": "get", "namespace": "a", "key": "k"}] * 1001,
        [{"op": "drop"}],
        [{"op": "get", "namespace": "a", "key": "k", "user_id": "bob"}],
        [],
    ]:
        body = {
            "operations": [*operations, {"op": "put", "namespace": "a", "key": "k", "value": 1}] if operations else []
        }
        assert error(client.post("/api/store/batch", json=body), 422)["param"].startswith("operations")
        assert search(client) == []


def test_the_largest_value_and_the_longest_names_fit(client):
    value = {"é": "x" * ((1 << 16) - 9)}
    item = put(client, ".".join("abcdefgh"), "k" * 256, value)
    assert item["value"] == value and put(client, "n" * 256, "🏠" * 256, nested(51))["version"] == 1
    assert len(search(client)) == 2


UNKNOWN: tuple[Body, ...] = ({"$or": []}, {"a": {"$near": 1}}, {"a": {"$gt": 1, "b": 2}})
INVALID: tuple[Body, ...] = (
    *({'a"b': 1}, {"a": {"$gt": None}}, {"a": {"$gt": True}}, {"a": {"$eq": {"b": 1}}}, {"a": {"$in": 1}}),
    *({"a": {"$in": list(range(101))}}, {"a": [{}] * 101}, {"a": nested(11)}, {".".join("abcdefghijk"): 1}),
)
NO_SEARCH: tuple[Body, ...] = ({"filter": []}, {"filter": {"a": float("nan")}}, {"limit": 0})
WRONG: list[tuple[str, Body]] = [
    *(("unknown_operator", {"filter": wanted}) for wanted in UNKNOWN),
    *(("invalid_filter", {"filter": wanted}) for wanted in INVALID),
    *(("invalid_fields", body) for body in (*NO_SEARCH, {"namespace_prefix": ["a."]})),
]


def test_a_filter_of_the_most_levels_is_parsed(client):
    put(client, "a", "k", {"a": nested(10), "b": {"c": 2}})
    assert search(client, filter={"a": nested(10), "b.c": nested(9)}) == []
    assert search(client, filter={"a": nested(10), "b": {"c": {"$ne": 1}}}) == [("a", "k")]


def test_a_search_that_is_wrong_is_refused(client):
    for code, body in WRONG:
        answer = client.post("/api/store/search", data=json.dumps(body), content_type="application/json")
        refused = error(answer, 422)
        assert refused["code"] == code and refused["param"].startswith(next(iter(body)))
        operation = {
            "operations": [{"op": "put", "namespace": ["a"], "key": "k", "value": 1}, {"op": "search", **body}]
        }
        answer = client.post("/api/store/batch", data=json.dumps(operation), content_type="application/json")
        error(answer, 422)
        assert search(client) == []


def test_a_key_that_may_not_read_reads_nothing_in_a_batch_either(client):
    key, _ = engine_of(client.application).keys.create("acme", None, ["chat"])
    writer, name = with_key(client.application, key), {"namespace": ["a"], "key": "k"}
    good(writer.put(ITEMS, json={**name, "value": 1}))
    assert batch(writer, {"op": "put", **name, "value": 2}, {"op": "delete", **name})[1]["erased"]["items"] == 1
    operations = {"operations": [{"op": "put", **name, "value": 3}, {"op": "get", **name}]}
    assert error(writer.post("/api/store/batch", json=operations), 403)["code"] == "scope_missing"
    assert rows_of(engine_of(client.application))["items"] == 0
