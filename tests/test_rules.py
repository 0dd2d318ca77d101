"""Rules of what is kept: topics, categories and their ends, and review, in every way by which facts are stored."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select

from app import engine_of
from memory.knowledge import rules
from memory.knowledge.rule_set import RuleSet
from models import FactRow
from schemas.rules import TOPICS_MAX
from tests.application import soon_over
from tests.http import Body, append, error, good, read_all, said
from tests.knowledge import Talk, digest_of, fact
from tests.model_server import prompts
from tests.test_profile import Person, change, patch

# Messages in three languages, with what each is about: written before there were rules, and never changed since.
SAID = (
    ("health", "I was diagnosed with type 2 diabetes last spring."),
    ("money", "My salary is 4,200 euros a month after tax."),
    ("", "I live in Tallinn with my two cats."),
    ("health", "I can't climb stairs any more since the operation on my knee."),
    ("money", "I still owe my brother 900 for the car."),
    ("health", "Ich nehme seit Jahren Tabletten gegen Bluthochdruck."),
    ("money", "Mein Kontostand ist diesen Monat schon wieder im Minus."),
    ("", "Ich arbeite als Tischler in Leipzig."),
    ("health", "Meine Tochter hat eine Nussallergie."),
    ("health", "Estoy embarazada de tres meses."),
    ("money", "Tengo una hipoteca con el banco a treinta años."),
    ("", "Toco la guitarra en Valencia los lunes."),
)

TOPICS = ["health", "money"]
_OWNERS = select(FactRow.owner_id)


def put(client: FlaskClient, user: str | None = None, **rules: Any) -> dict[str, Any]:
    """Store rules, for all without a user."""
    return good(client.put("/api/rules", json={**({"user_id": user} if user else {}), **rules}))


def texts(client: FlaskClient, user: str = "ada", **query: Any) -> list[str]:
    return [item["text"] for item in read_all(client, "/api/facts", user_id=user, **query)]


def remembered(client: FlaskClient, session: str) -> str:
    """All that a session's summary, its facts and its person's profile say."""
    summary = good(client.get(f"/api/sessions/{session}/summary"))
    facts = read_all(client, "/api/facts", session_id=session)
    return json.dumps([summary["latest"]["sections"] if summary["latest"] else {}, facts], ensure_ascii=False)


# -- topics


def disobedient(request: Body) -> Body:
    """A mini model that has never heard of rules: each message is a fact and a line, word for word."""
    lines = re.findall(r"^\[(\d+)\] .*?user: (.*)$", request["messages"][-1]["content"], re.M)
    return digest_of(*(fact(text, int(number)) for number, text in lines), data=[text for _, text in lines])


def leaks(client: FlaskClient, user: str) -> tuple[set[str], set[str]]:
    """What of SAID got in although its topic is kept out, and what was left out although it is not."""
    append(client, user, [said(text) for _, text in SAID], user_id=user)
    engine_of(client.application).job_queue.run_due(["summary"])
    kept = remembered(client, user)

    def is_kept(text: str) -> bool:
        words = re.findall(r"\w+", text)
        return any(" ".join(words[at : at + 3]) in " ".join(re.findall(r"\w+", kept)) for at in range(len(words) - 2))

    leaked = {text for topic, text in SAID if topic and is_kept(text)}
    return leaked, {text for topic, text in SAID if not topic and not is_kept(text)}


def test_topics_stay_out_of_facts_and_summary_whatever_the_model_says(talk):
    talk.server.mini.default = disobedient
    leaked, missing = leaks(talk.client, "bob")
    assert (leaked, missing) == ({text for topic, text in SAID if topic}, set()), "without rules all of it is kept"
    assert all("kept_out" not in one[0]["content"] for one in talk.digests())
    put(talk.client, "ada", topics=TOPICS)
    assert leaks(talk.client, "ada") == (set(), set())
    assert "<kept_out>\n- health\n- money\n</kept_out>" in talk.digests()[-1][0]["content"]


def test_topics_stay_out_of_what_the_built_in_model_notes(client):
    put(client, "ada", topics=TOPICS)
    leaked, _ = leaks(client, "ada")
    assert leaked == set()


def test_a_summary_written_before_the_rules_loses_its_lines_with_the_next_version(talk):
    line = "Takes tablets for blood pressure"
    talk.hear("Hello.", reply=digest_of(data=[line, "Likes tea"], excluded=[{"option": "insulin", "reason": "cost"}]))
    put(talk.client, topics=["Gesundheit"], close=False)
    talk.hear("Well.", reply=digest_of(data=[line, "Likes tea"], topic="Diabetes"))
    assert line not in talk.digests()[-1][-1]["content"] and "Likes tea" in talk.digests()[-1][-1]["content"]
    sections = talk.summary()["latest"]["sections"]
    assert (sections["topic"], sections["data"], sections["excluded"]) == ("", ["Likes tea"], [])


def test_rules_that_come_while_the_model_works_hold_for_what_it_wrote(talk):
    def late(request: Body) -> Body:
        put(talk.client, topics=["health"])
        return digest_of(fact("I have asthma.", 1), fact("I like tea.", 1), data=["Has asthma", "Likes tea"])

    talk.hear("I have asthma. I like tea.", reply=late)
    assert talk.texts() == ["I like tea."] and talk.summary()["latest"]["sections"]["data"] == ["Likes tea"]


@pytest.mark.parametrize("way", ["rollback", "edit", "erase", "show"])
def test_no_version_brings_back_what_the_rules_keep_out(talk, way):
    client, messages, data = talk.client, "/api/sessions/s/messages", ["Has asthma", "Likes tea"]
    talk.hear("I like tea.", reply=digest_of(data=data))
    talk.say("I like figs.")
    figs = read_all(client, messages)[-1]["id"]
    good(client.post(f"{messages}/hide", json={"ids": [figs]}))
    talk.hear("I like plums.", reply=digest_of(data=[*data, "Likes plums"]))
    put(client, topics=["health"], close=True)
    if way == "rollback":
        good(client.post(f"{talk.address}/rollback", json={"version": 1}))
    elif way == "edit":
        good(talk.edit("Tea", sections={"topic": "Tea", "data": data}))
    elif way == "erase":
        good(client.delete(f"{messages}/{read_all(client, messages)[-1]['id']}"))
    else:
        good(client.post(f"{messages}/show", json={"ids": [figs]}))
    assert talk.summary()["latest"]["sections"]["data"] == ["Likes tea"]
    assert "asthma" not in talk.prompt("Well?")


def test_no_version_of_a_profile_brings_back_what_the_rules_or_the_schema_refuse(client):
    values = {"home": "Oslo", "work": "a carpenter", "health_limits": ["asthma"]}
    patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in values.items()]
    good(client.patch("/api/users/ada/profile", json={"patch": patch}))
    put(client, "ada", topics=["health"], close=True)
    fields = {"work": {"type": "string"}, "health_limits": {"type": "array"}}
    schema = {"type": "object", "additionalProperties": False, "properties": fields}
    good(client.put("/api/profile/schema", json={"schema": schema}))
    good(client.post("/api/users/ada/profile/rollback", json={"version": 1}))
    assert good(client.get("/api/users/ada/profile"))["document"] == {"work": "a carpenter"}


def test_rules_that_come_while_the_profile_is_written_hold_for_it(model_app, model_server):
    ada = Person(model_app, model_server)
    ada.tell("I have asthma.", "I live in Tallinn.")
    asthma = change("add", "/health_limits/-", "asthma", "I have asthma.")
    home = change("add", "/home", "Tallinn", "I live in Tallinn.", 2)

    def late(request: Body) -> Body:
        put(ada.client, "ada", topics=["health"], close=False)
        return patch(asthma, home)

    ada.update(late)
    assert ada.update(patch(asthma, home))["document"] == {"home": "Tallinn"}
    assert "<kept_out>\n- health\n</kept_out>" in prompts(model_server, "mini")[-1][0]["content"]


ASTHMA = {"user_id": "ada", "text": "Has asthma"}


def test_whoever_writes_a_fact_is_held_by_the_rules(client):
    tea = good(client.post("/api/facts", json={"user_id": "ada", "text": "Likes tea"}))
    put(client, topics=["health"])
    refused = client.post("/api/facts", json=ASTHMA)
    assert error(refused, 422)["code"] == "kept_out"
    changed = client.patch(f"/api/facts/{tea['id']}", json={"text": "Has asthma"})
    assert error(changed, 422)["code"] == "kept_out"
    good(client.patch(f"/api/facts/{tea['id']}", json={"pinned": True}))
    arguments = {"text": "Has asthma", "quote": "I have asthma"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add_memory", "arguments": arguments}}
    answer = client.post("/mcp?user_id=ada", json=call, headers={"Accept": "application/json, text/event-stream"})
    assert "By the rules of what is kept" in answer.text
    patch = [{"op": "add", "path": "/health_limits", "value": ["asthma"]}]
    edited = client.patch("/api/users/ada/profile", json={"patch": patch})
    assert error(edited, 422)["code"] == "kept_out"
    memories = [{"id": "1", "memory": "Has asthma"}, {"id": "2", "memory": "Has a dog"}]
    good(client.post("/api/import?user_id=ada", json=memories))
    assert texts(client) == ["Has a dog", "Likes tea"]


@pytest.mark.parametrize(
    ("topic", "inside", "outside"),
    [
        ("salaries", "Dana's salary is 90,000", "Likes salads"),
        ("my divorce", "The user is getting divorced in May", "The user divides the garden"),
        ("wine", "Drinks two wines a day", "Wants to win the cup"),
        ("the Johnson merger", "Johnson and the merger: signed on 3 May", "Johnson is the dentist"),
        ("Gehälter", "Das Jahresgehalt von Dana ist hoch", "Er ist alt und hat einen Hund"),
        ("Gehälter", "Mein gehalt ist hoch", "Das Versprechen wurde gehalten"),
        ("war", "My father was in the war", "My father was in the garden"),
        ("my son", "My son is five", "Les chats sont gris"),
        ("mes enfants", "Mon enfant a 5 ans", "Le chien joue dans le jardin"),
        ("Krankenakten", "Die Krankenakte liegt bei der Klinik", "Die Akte des Falls liegt im Büro"),
        ("sueldos", "El sueldo de Ana es de 2000 euros", "El suelo de la cocina es de madera"),
        ("zarobki", "Nie mówi o swoich zarobkach", "Ma nowy zegar w kuchni"),
        ("зарплаты", "Он не доволен зарплатой", "Анна платит за парковку"),
        ("工资", "她的工资是九万", "她在北京工作"),
        # by words of the texts' own languages; of English also by long words, which others borrow
        ("health", "My back is in constant pain", "J'aime le pain"),
        ("santé", "Elle a mal et prend un cachet", "She works on operating systems"),
        ("money", "Il me doit cent euros", "Marche deux cents pas, c'est lent"),
        ("money", "Ha perso molto denaro", "I read Reddit and the inverse of a matrix"),
        ("politics", "Wir wählen die Grünen bei der Wahl", "The manifest names a disk partition"),
        ("religion", "Wir beten jeden Abend", "I bet it rains at Christmas dinner"),
        ("health", "Ich hatte gestern eine surgery und mein ADHD", "Wir kaufen das Haus in Leipzig"),
        ("health", "Asthma", "Bread"),
        ("sexuality", "My friend is trans", "The translation is done"),
        ("health", "Has hay fever", "The plot has a gap"),
        ("politics", "Vota a sinistra", "Ha perso le chiavi"),
        ("religion", "Is een katholiek", "Heeft een fiets"),
    ],
)
def test_a_topic_is_known_by_its_words_in_any_form(topic, inside, outside):
    rules = RuleSet(topics=(topic,))
    assert rules.keeps_out(inside) and not rules.keeps_out(outside)


# -- words


def test_a_word_is_found_where_it_stands():
    for word, inside, outside in (
        ("pregnan*", "She is Pregnant", "impregnable"),
        ("*allergie", "Eine Nussallergie", "Allergiker"),
        ("my divorce", "After MY   divorce", "my dog, divorced"),
        ("#### ####", "card 1234 5678", "12345 6789"),
        ("cafe", "im CAFÉ", "cafeteria"),
        ("病", "我生病了", "我很好"),
        ("zoe", "Z\u200bo\u0308e", "zoetrope"),
        ("(x+x+)+y", "it is (x+x+)+y here", "xxxxxxxxxxxxxxxxxxxxxxxx"),
    ):
        rules = RuleSet(words=(word,))
        assert rules.keeps_out(inside) and not rules.keeps_out(outside)


def test_no_word_takes_longer_than_its_text_is_long():
    for word in ("(x+x+)+y", "*x* *x* *x* *x* *x*", "x* *x x* *x x*", "# # # # # # #", "((((((x))))))", "x{1,9}{1,9}"):
        rules = RuleSet(words=(word,) * 50)
        for text in ("x" * 4_000, "x " * 2_000, "1 " * 2_000, "(" * 4_000, "\u0301" * 4_000, "xy" * 50_000):
            with soon_over(0.5):
                rules.keeps_out(text)


def test_a_word_that_says_nothing_is_refused(client):
    for word in ("*", "**", "a*b", "-", "* *", "!!"):
        assert error(client.put("/api/rules", json={"words": [word]}), 422)["code"] == "bad_word"
    assert good(client.get("/api/rules"))["version"] == 0


# -- categories


def test_categories_are_left_out_added_and_end(talk):
    rules = [{"name": "work", "keep": False}, {"name": "pets", "about": "their animals"}, {"name": "event", "days": 30}]
    put(talk.client, categories=rules)
    now = datetime.fromisoformat(good(talk.client.get("/api/rules"))["created_at"])
    answer = digest_of(
        fact("I am a nurse.", 1, category="work"),
        fact("I have a cat.", 2, category="pets"),
        fact("I saw Hamlet.", 3, category="event"),
        fact("I like tea.", 4, category="drinks"),
    )
    at = (now - timedelta(days=1)).isoformat()
    told = ("I am a nurse.", "I have a cat.", "I saw Hamlet.", "I like tea.")
    talk.hear(*(said(text, created_at=at) for text in told), reply=answer)
    stored = {item["text"]: (item["category"], item["expires_at"] is not None) for item in talk.facts()}
    assert stored == {
        "I have a cat.": ("pets", False),
        "I saw Hamlet.": ("event", True),
        "I like tea.": ("other", False),
    }
    told_model = talk.digests()[-1][0]["content"]
    assert "List no facts of these categories: work." in told_model and "- pets: their animals" in told_model
    assert talk.texts(category="pets") == ["I have a cat."]


def test_only_known_categories_are_stored(client):
    cat = {"user_id": "ada", "text": "Has a cat", "category": "pets"}
    refused = client.post("/api/facts", json=cat)
    assert error(refused, 422)["code"] == "unknown_category"
    put(client, "ada", categories=[{"name": "pets"}])
    assert good(client.post("/api/facts", json=cat))["category"] == "pets"
    refused = client.post("/api/facts", json={**cat, "user_id": "bob"})
    assert error(refused, 422)["code"] == "unknown_category" and "preference" in refused.json["error"]["message"]
    twice = client.put("/api/rules", json={"categories": [{"name": "pets"}, {"name": "pets", "keep": False}]})
    assert error(twice, 422)["code"] == "category_twice"


def test_a_name_ends_where_its_line_does(client):
    """Of a category, and an id of a tool."""
    refused = client.put("/api/rules", json={"user_id": "ada", "categories": [{"name": "pets\n"}]})
    assert "categories.0.name" in error(refused, 422)["fields"]
    call = {"name": "fetch", "arguments": {"id": "tea\n"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    assert "Must be an id that a tool has shown" in client.post("/mcp?user_id=ada", json=message).text


def test_a_category_sets_the_end_of_its_facts_at_most(bench):
    client, clock = bench.client, bench.clock
    put(client, categories=[{"name": "event", "days": 30}])
    later = (clock.now + timedelta(days=90)).isoformat()
    hamlet = {"user_id": "ada", "text": "Saw Hamlet", "category": "event", "expires_at": later}
    made = good(client.post("/api/facts", json=hamlet))
    assert made["expires_at"] == (clock.now + timedelta(days=30)).isoformat()
    address = f"/api/facts/{made['id']}"
    assert good(client.patch(address, json={"expires_at": None}))["expires_at"] == made["expires_at"]
    clock.tick(31 * 86_400)
    assert texts(client) == []


# -- a tenant's and a person's


def test_a_person_only_narrows_the_rules_of_all(client):
    shared = [{"name": "work", "keep": False}, {"name": "event", "days": 30}, {"name": "other", "days": 10}]
    put(client, categories=shared, topics=["health"], words=["secret"], review=True)
    own = [{"name": "work"}, {"name": "event", "days": 90}, {"name": "plan", "days": 5}, {"name": "pets", "days": 20}]
    put(client, "ada", categories=own, topics=["money"])
    answer = good(client.get("/api/rules?user_id=ada"))
    assert answer["rules"]["topics"] == ["money"] and not answer["rules"]["review"]
    rules = answer["in_force"]
    assert {one["name"]: (one["keep"], one["days"]) for one in rules["categories"]} == {
        "work": (False, None),
        "event": (True, 30),
        "other": (True, 10),
        "plan": (True, 5),
        "pets": (True, 10),  # as long as what has no category
    }
    assert (rules["topics"], rules["words"], rules["review"]) == (["health", "money"], ["secret"], True)
    assert good(client.get("/api/rules?user_id=bob"))["in_force"] == good(client.get("/api/rules"))["rules"]


def test_new_rules_of_all_are_decided_with_each_persons_own(client):
    """A category that the tenant drops is one of the others, which ada keeps out."""
    put(client, categories=[{"name": "pets"}])
    put(client, "ada", categories=[{"name": "other", "keep": False}])
    for user in ("ada", "bob"):
        good(client.post("/api/facts", json={"user_id": user, "text": "Has a dog", "category": "pets"}))
    put(client, categories=[], close=True)
    assert (texts(client, "ada"), texts(client, "bob")) == ([], ["Has a dog"])


def test_a_persons_rule_for_other_facts_leaves_the_tenants_categories_alone(client):
    put(client, categories=[{"name": "pets"}])
    for category, text in (("pets", "Has a dog"), ("other", "Saw Hamlet")):
        good(client.post("/api/facts", json={"user_id": "ada", "text": text, "category": category}))
    put(client, "ada", categories=[{"name": "other", "days": 3}])
    ends = {item["text"]: item["expires_at"] is not None for item in read_all(client, "/api/facts", user_id="ada")}
    assert ends == {"Has a dog": False, "Saw Hamlet": True}
    rules = {"categories": [{"name": "other", "keep": False}]}
    effect = good(client.post("/api/rules/preview", json={"user_id": "ada", **rules}))
    assert [item["text"] for item in effect["facts"]] == ["Saw Hamlet"]
    put(client, "ada", **rules, close=True)
    assert texts(client) == ["Has a dog"]


def test_every_version_is_kept_until_the_rules_are_erased(client):
    put(client, "ada", topics=["health"])
    put(client, "ada", topics=["money"], expected_version=1)
    late = client.put("/api/rules", json={"user_id": "ada", "topics": ["x"], "expected_version": 1})
    assert late.status_code == 409
    back = good(client.post("/api/rules/rollback", json={"user_id": "ada", "version": 1}))
    assert (back["version"], back["rules"]["topics"], back["author"]) == (3, ["health"], "rollback")
    versions = good(client.get("/api/rules/versions?user_id=ada"))["items"]
    assert [(one["version"], one["rules"]["topics"]) for one in versions] == [
        (3, ["health"]),
        (2, ["money"]),
        (1, ["health"]),
    ]
    assert good(client.delete("/api/rules?user_id=ada"))["erased"]["item_versions"] == 3
    assert good(client.get("/api/rules?user_id=ada"))["version"] == 0
    assert client.delete("/api/rules?user_id=ada").status_code == 404


# -- what is stored already


def test_rules_say_what_they_would_close_and_close_it_only_then(talk):
    client = talk.client
    talk.hear(
        "I have asthma. I like tea.",
        reply=digest_of(fact("I have asthma.", 1), fact("I like tea.", 1), data=["Has asthma", "Likes tea"]),
    )
    talk.hear("Well.", reply=digest_of(data=["Has asthma", "Likes tea"]))
    patch = [
        {"op": "add", "path": "/health_limits", "value": ["asthma"]},
        {"op": "add", "path": "/home", "value": "Oslo"},
    ]
    good(client.patch("/api/users/bob/profile", json={"patch": patch}))
    rules = {"topics": ["health"]}
    effect = good(client.post("/api/rules/preview", json=rules))
    assert [item["text"] for item in effect["facts"]] == ["I have asthma."]
    assert (effect["fact_count"], effect["summaries"], effect["profiles"]) == (1, 1, 1)
    refused = client.put("/api/rules", json=rules)
    assert error(refused, 409)["code"] == "rules_close_facts"
    assert good(client.get("/api/rules"))["version"] == 0 and len(talk.facts()) == 2
    put(client, **rules, close=False)
    assert len(talk.facts()) == 2
    put(client, **rules, close=True)
    assert talk.texts() == ["I like tea."]
    assert talk.summary()["latest"]["sections"]["data"] == ["Likes tea"]
    assert good(client.get("/api/users/bob/profile"))["document"] == {"home": "Oslo"}
    (asthma,) = effect["facts"]
    last = good(client.get(f"/api/facts/{asthma['id']}/history"))["items"][-1]
    assert (last["action"], last["author"]) == ("excluded", "person")
    assert "asthma" not in talk.prompt("How am I?").replace("I have asthma. I like tea.", "")
    put(client, **rules, words=["else"])  # nothing is left to ask for


@pytest.mark.parametrize("way", ["rules", "a forgotten fact", "an edited fact"])
def test_no_prompt_shows_an_older_summary_with_what_went(talk, way):
    client, line = talk.client, "Has asthma"
    talk.hear("I have asthma.", reply=digest_of(fact(line, 1, "I have asthma"), data=[line]))
    good(talk.edit("Tea", sections={"topic": "Tea", "data": [line, "Likes tea"]}))
    talk.hear("Well.", reply=digest_of(data=["Likes tea"]))
    assert talk.summary()["head_version"] < talk.summary()["latest"]["version"] and f"- {line}" in talk.prompt("Well?")
    (asthma,) = talk.facts()
    if way == "rules":
        rules = {"topics": ["health"]}
        assert good(client.post("/api/rules/preview", json=rules))["summaries"] == 1
        put(client, **rules, close=True)
    elif way == "a forgotten fact":
        good(client.delete(f"/api/facts/{asthma['id']}"))
    else:
        good(client.patch(f"/api/facts/{asthma['id']}", json={"text": "Has a cold"}))
    assert line not in talk.prompt("How?")
    assert talk.summary()["latest"]["sections"]["data"] == ["Likes tea"]


def test_rules_that_are_brought_back_close_as_new_ones_do(client):
    put(client, "ada", topics=["health"])
    put(client, "ada", topics=[])
    good(client.post("/api/facts", json=ASTHMA))
    back = {"user_id": "ada", "version": 1}
    assert error(client.post("/api/rules/rollback", json=back), 409)["code"] == "rules_close_facts"
    assert good(client.get("/api/rules?user_id=ada"))["version"] == 2 and texts(client) == ["Has asthma"]
    good(client.post("/api/rules/rollback", json={**back, "close": True}))
    assert texts(client) == []


def test_what_is_stored_while_rules_are_checked_is_closed_too(client, monkeypatch):
    preview = rules.preview

    def late(*args: Any) -> rules.Effect:
        effect = preview(*args)
        good(client.post("/api/facts", json=ASTHMA))
        return effect

    monkeypatch.setattr(rules, "preview", late)
    put(client, "ada", topics=["health"], close=True)
    assert texts(client) == []


def test_new_rules_end_what_is_stored(bench):
    client, clock = bench.client, bench.clock
    for days, text in ((40, "Saw Lear"), (1, "Saw Hamlet")):
        since = (clock.now - timedelta(days=days)).isoformat()
        good(client.post("/api/import?user_id=ada", json=[{"id": text, "memory": text, "created_at": since}]))
    rules = {"categories": [{"name": "other", "days": 30}]}
    effect = good(client.post("/api/rules/preview", json=rules))
    assert [item["text"] for item in effect["facts"]] == ["Saw Lear"]
    put(client, **rules, close=True)
    assert texts(client) == ["Saw Hamlet"]
    clock.tick(29 * 86_400)
    assert texts(client) == []
    assert bench.engine.job_queue.run_due(["fact_ends"]) == 1


# -- review


def test_a_fact_waits_until_somebody_accepts_it(talk):
    client = talk.client
    put(client, review=True)
    talk.hear(
        "I have a dog. I like tea.",
        reply=digest_of(fact("I have a dog.", 1, scope="user"), fact("I like tea.", 1, scope="user")),
    )
    talk.hear("I have a dog.", reply=digest_of(fact("I have a dog.", 2)))  # it waits already
    assert (talk.texts(), sorted(talk.texts(state="waiting"))) == ([], ["I have a dog.", "I like tea."])
    dog, tea = sorted(talk.facts(state="waiting"), key=lambda item: str(item["text"]))
    assert dog["waiting"] and talk.counts()["repeated"] == 1
    assert talk.facts(as_of=dog["valid_from"]) == [] and talk.facts(as_of="2999-01-01T00:00:00Z") == []
    assert "said 20" not in talk.prompt("Tea or dog?").partition("<facts>\n")[2]
    assert good(client.get("/api/search?q=dog&kind=fact&session_id=s"))["results"] == []

    def events() -> list[str]:
        text = client.get("/api/events?seconds=0&after=0-0-0-0-0&types=fact.created,fact.corrected").text
        return re.findall(r"^event: (\S+)", text, re.M)

    assert events() == []
    reviewed = good(client.post("/api/facts/review", json={"accepted": [dog["id"], 999], "refused": [tea["id"]]}))
    assert reviewed == {"accepted": 1, "refused": 1} and events() == ["fact.created"]
    assert (talk.texts(), talk.texts(state="waiting")) == (["I have a dog."], [])
    history = good(client.get(f"/api/facts/{dog['id']}/history"))["items"]
    assert [(one["action"], one["author"]) for one in history] == [("proposed", "model"), ("accepted", "person")]
    assert client.get(f"/api/facts/{tea['id']}/history").status_code == 404
    assert "I have a dog" in talk.prompt("Do I have a dog?")


def test_an_accepted_fact_takes_the_place_of_what_it_corrects(talk):
    talk.hear(
        said("I live in Bergen.", created_at="2024-01-01T00:00:00Z"),
        reply=digest_of(fact("Lives in Bergen", 1, "I live in Bergen")),
    )
    put(talk.client, review=True)
    (old,) = talk.facts()
    talk.hear(
        said("I moved to Oslo.", created_at="2024-06-01T00:00:00Z"),
        reply=digest_of(fact("Lives in Oslo", 2, "I moved to Oslo", supersedes=[old["id"]])),
    )
    assert talk.texts() == ["Lives in Bergen"]
    (new,) = talk.facts(state="waiting")
    good(talk.client.post("/api/facts/review", json={"accepted": [new["id"]]}))
    assert talk.texts() == ["Lives in Oslo"]
    assert talk.texts(as_of="2024-05-31T23:59:59Z") == ["Lives in Bergen"]


def test_the_profile_is_made_from_accepted_words_alone(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    put(talk.client, "ada", review=True)
    talk.hear(
        "I live in Oslo. I have asthma.",
        reply=digest_of(fact("I live in Oslo.", 1, scope="user"), fact("I have asthma.", 1, scope="user")),
    )
    oslo = next(item for item in talk.facts(state="waiting") if "Oslo" in item["text"])
    good(talk.client.post("/api/facts/review", json={"user_id": "ada", "accepted": [oslo["id"]]}))
    engine = engine_of(model_app)
    with engine.database.read() as tx:
        (owner_id,) = {row.owner_id for row in tx.execute(_OWNERS)}
    model_server.mini.queue({"patch": []})
    assert engine.job_queue.run_now("profile", owner_id) is None
    sent = prompts(model_server, "mini")[-1][-1]["content"]
    assert "I live in Oslo" in sent and "asthma" not in sent


def test_what_waits_is_exported_as_waiting(talk):
    put(talk.client, review=True)
    told = {"text": "Has a dog", "quote": "I have a dog"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add_memory", "arguments": told}}
    accept = {"Accept": "application/json, text/event-stream"}
    assert "Has a dog" in talk.client.post("/mcp?user_id=ada", json=call, headers=accept).text
    assert texts(talk.client) == [] and texts(talk.client, state="waiting") == ["Has a dog"]
    document = good(talk.client.get("/api/users/ada/export"))
    assert [item["waiting"] for item in document["facts"]] == [True]
    markdown = talk.client.get("/api/users/ada/export?format=markdown").text
    assert "## Facts that wait for review\n\n- Has a dog" in markdown and "no longer" not in markdown
    good(talk.client.post("/api/import?user_id=bob", json=document))
    assert texts(talk.client, "bob") == [] and texts(talk.client, "bob", state="waiting") == ["Has a dog"]
    person = good(talk.client.post("/api/facts", json={"user_id": "ada", "text": "Has a cat"}))
    assert not person["waiting"]  # the person said it themself


def test_an_import_brings_no_rules_that_nobody_could_store(client):
    put(client, "ada", topics=["health"], categories=[{"name": "work", "days": 3}])
    document = good(client.get("/api/users/ada/export"))
    (item,) = document["items"]
    kept = item["value"]
    wrong = [
        {"topics": [f"topic {number}" for number in range(TOPICS_MAX + 1)]},
        {"words": ["*"]},
        {"categories": kept["categories"] * 2},
        {"categories": [kept["categories"][0] | {"days": 10**9}]},
    ]
    for user, changes in enumerate([*wrong, {}]):
        item["value"] = kept | changes
        created = good(client.post(f"/api/import?user_id=bob-{user}", json=document))["created"]
        assert created["items"] == (0 if changes else 1), changes
        good(client.post("/api/facts", json={"user_id": f"bob-{user}", "text": "Has a job", "category": "work"}))


def test_an_import_brings_nothing_that_the_rules_keep_out(model_app, model_server):
    person = Person(model_app, model_server)
    append(person.client, "s", [said("I live in Oslo. I have asthma.")], user_id="ada")
    summary = {"topic": "Oslo", "data": ["lives in Oslo", "has asthma"]}
    good(person.client.put("/api/sessions/s/summary", json={"user_id": "ada", "sections": summary}))
    add = [{"op": "add", "path": "/home", "value": "Oslo"}, {"op": "add", "path": "/likes", "value": ["asthma"]}]
    good(person.edit(*add))
    document = good(person.client.get("/api/users/ada/export"))
    assert {"asthma", "Oslo"} <= set(re.findall("asthma|Oslo", json.dumps(person.profile())))
    put(person.client, "bob", words=["asthma"])
    good(person.client.post("/api/import?user_id=bob", json=document))
    versions = person.client.get("/api/sessions/s/summary/versions", query_string={"user_id": "bob"})
    history = person.client.get("/api/users/bob/profile/versions")
    for shown in (versions, history, person.client.get("/api/users/bob/profile")):
        assert "Oslo" in shown.text and "asthma" not in shown.text
