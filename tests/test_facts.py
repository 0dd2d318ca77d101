"""Facts: each rests on words somebody said, holds for a time, and has an owner.  (Ranking: test_fact_ranking.)"""

import logging
import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.http import append, chat, error, good, read_all, said
from tests.knowledge import Talk, digest_of, fact

# -- taken from what was said


def test_a_fact_that_does_not_hold_up_is_refused_and_said_so(talk, caplog):
    caplog.set_level(logging.INFO, "memory")
    logging.getLogger().setLevel(logging.INFO)
    refused = {
        "its quote is not in its source": fact("Lives in Bergen", 3, "I moved to Bergen"),
        "no message 7 was shown": fact("Lives in Oslo", 7, "I live in Oslo"),
        "message 2 is not the person's own": fact("Likes rain", 2, "You like rain"),
        "empty or too long": fact("", 1, "Bergen"),
        "no message 0 was shown": {"text": "Lives in Oslo"},
    }
    drafts = [*refused.values(), fact("Drinks tea", 2, "I drink tea")]  # miscounted, and found where it was said
    talk.hear("I live in Bergen.", said("You like rain.", "assistant"), "I drink tea.", reply=digest_of(*drafts))
    (stored,) = talk.facts()
    source = read_all(talk.client, "/api/sessions/s/messages")[2]
    assert (stored["text"], stored["source_message_id"]) == ("Drinks tea", source["id"])
    assert "5 facts refused: " + "; ".join(refused) in caplog.text
    assert talk.counts() == {"added": 1, "superseded": 0, "repeated": 0, "refused": 5}


def test_what_was_forgotten_is_not_taken_from_the_same_message_again(talk):
    talk.hear("Hello.", reply=digest_of())
    talk.hear("I drink tea.", reply=digest_of(fact("Drinks tea", 2, "I drink tea")))
    talk.client.delete(f"/api/facts/{talk.facts()[0]['id']}")
    good(talk.client.post("/api/sessions/s/summary/rollback", json={"version": 1}))
    good(talk.client.post("/api/sessions/s/summary/refresh"))  # the message is digested anew
    talk.digest(digest_of(fact("Drinks tea", 2, "I drink tea")))
    assert "I drink tea" in talk.digests()[-1][-1]["content"]
    assert talk.facts() == []


# -- corrections


def test_a_correction_supersedes_and_the_past_can_be_read(talk):
    talk.hear(
        said("I live in Bergen.", created_at="2024-01-01T00:00:00Z"),
        reply=digest_of(fact("Lives in Bergen", 1, "I live in Bergen", importance=4)),
    )
    old = talk.facts()[0]
    talk.hear(
        said("I moved to Oslo.", created_at="2024-06-01T00:00:00Z"),
        reply=digest_of(fact("Lives in Oslo", 2, "I moved to Oslo", supersedes=[old["id"], 999])),
    )
    sent = talk.digests()[-1][-1]["content"]
    assert f"<known_facts>\n[F{old['id']}] Lives in Bergen (said 2024-01-01 00:00)" in sent
    assert talk.texts() == ["Lives in Oslo"]
    new = talk.facts()[0]
    assert talk.texts(as_of="2023-12-31T23:59:59Z") == []
    assert talk.texts(as_of="2024-01-01T00:00:00Z") == ["Lives in Bergen"]
    assert talk.texts(as_of="2024-05-31T23:59:59Z") == ["Lives in Bergen"]
    assert talk.texts(as_of="2024-06-01T00:00:00Z") == ["Lives in Oslo"]
    (then,) = talk.facts(as_of="2024-03-01")
    assert (then["id"], then["valid_to"], then["superseded_by"]) == (old["id"], "2024-06-01T00:00:00+00:00", new["id"])
    assert {**good(talk.client.get(f"/api/facts/{old['id']}")), "score": 0} == {**then, "score": 0}

    history = good(talk.client.get(f"/api/facts/{new['id']}/history"))["items"]
    assert [(item["fact_id"], item["action"], item["author"], item["text"]) for item in history] == [
        (old["id"], "made", "model", "Lives in Bergen"),
        (new["id"], "made", "model", "Lives in Oslo"),
        (old["id"], "superseded", "model", "Lives in Bergen"),
    ]
    assert "Lives in Oslo" in talk.prompt("Where do I live?")
    assert "Lives in Bergen" not in talk.prompt("And where else?")


def test_what_a_forgotten_correction_had_corrected_holds_until_the_next_correction(talk):
    wrong: list[int] = []
    for number, (city, at) in enumerate((("Bergen", "2024-01-01"), ("Rome", "2024-03-01"), ("Oslo", "2024-06-01")), 1):
        words = f"I live in {city}."
        digest = digest_of(fact(f"Lives in {city}", number, words, supersedes=wrong))
        talk.hear(said(words, created_at=f"{at}T00:00:00Z"), reply=digest)
        wrong = [one["id"] for one in talk.facts()]
    (rome,) = talk.facts(as_of="2024-04-01")
    good(talk.client.delete(f"/api/facts/{rome['id']}?restore=true"))
    (then,) = talk.facts(as_of="2024-05-31")
    assert (then["text"], then["valid_to"]) == ("Lives in Bergen", "2024-06-01T00:00:00+00:00")
    assert talk.texts() == talk.texts(as_of="2024-06-01") == ["Lives in Oslo"]


@pytest.mark.parametrize("written", ["F{}", "[f{}]", None], ids=str)
def test_what_is_over_ends_a_fact_by_the_mark_that_the_mini_model_sees(talk, written):
    talk.hear("I drive a blue Volvo.", reply=digest_of(fact("Drives a blue Volvo", 1, "I drive a blue Volvo")))
    (car,) = talk.facts()
    mark = written.format(car["id"]) if written else car["id"]
    theirs = said("You sold the car.", "assistant")
    talk.hear(theirs, reply=digest_of(fact("Sold the car", 2, "You sold the car", supersedes=[mark])))
    assert talk.texts() == ["Drives a blue Volvo"], "the assistant's words end nothing"
    talk.hear("We sold the car.", reply=digest_of(fact("Sold the car", 3, "We sold the car", supersedes=[mark])))
    assert f"<known_facts>\n[F{car['id']}] Drives" in talk.digests()[-1][-1]["content"]
    assert talk.texts() == ["Sold the car"]
    history = good(talk.client.get(f"/api/facts/{talk.facts()[0]['id']}/history"))["items"]
    assert [(item["action"], item["text"]) for item in history][2:] == [("superseded", "Drives a blue Volvo")]
    message = talk.facts()[0]["source_message_id"]
    good(talk.client.delete(f"/api/sessions/s/messages/{message}"))
    assert talk.texts() == ["Drives a blue Volvo"], "an end goes with the words that it rests on"


def test_a_prompt_lists_facts_as_they_were_said_whatever_their_rank(talk):
    prices = [("200 euros", 2), ("250 euros", 5), ("230 euros", 3)]
    for hour, (price, importance) in enumerate(prices):
        words = f"The oven is {price}"
        told = fact(words, hour + 1, importance=importance, scope="user")
        talk.hear(said(words, created_at=f"2024-03-05T1{hour}:00:00Z"), reply=digest_of(told))
    talk.hear(*6 * [said("Hm.", "assistant")])
    known = talk.digests()[-1][-1]["content"]
    assert re.findall(r"is (.*) \(said 2024-03-05 (.*)\)", known) == [
        (price, f"1{hour}:00") for hour, (price, _) in enumerate(prices)
    ]
    listed = re.findall(r"^- The oven is (.*) \(said 2024-03-05 (.*)\)$", talk.prompt("And now?"), re.M)
    assert listed == [(price, f"1{hour}:00") for hour, (price, _) in enumerate(prices)]


@pytest.mark.parametrize(
    ("message", "day"),
    [
        ("Wizyta dwunastego listopada", "12"),
        ("Wizyta dwudziestego pierwszego listopada", "21"),
        ("Termin am zwölften November", "12"),
        ("Afspraak de eenentwintigste november", "21"),
        ("Встреча двенадцатого ноября", "12"),
    ],
)
def test_a_day_said_in_words_may_be_written_in_figures(talk, message, day):
    dates = [f"{message.split()[0]} 2027-11-{number}" for number in ("13", day)]
    talk.hear(message, reply=digest_of(*(fact(text, 1, message, scope="user") for text in dates)))
    assert talk.texts() == [dates[1]]


PLAIN = [  # a message, a known fact, what the model makes of the message, and whether that corrects it
    ("Nein, es kostet jetzt 480 Euro", "Das Bad kostet 400 Euro", "Das Bad kostet 480 Euro", True),
    ("On a déménagé à Lyon", "Habite à Paris", "Habite à Lyon", True),
    ("Me llamo Marta, no María", "Se llama María", "Se llama Marta", True),
    ("Teraz biorę 10 mg", "Bierze 5 mg leku", "Bierze 10 mg leku", True),
    ("Il costo è cambiato: 480 euro", "Il costo è di 400 euro", "Il costo è di 480 euro", True),
    ("Встречу перенесли на 15 декабря", "Встреча 12 декабря", "Встреча 15 декабря", True),
    ("Sekarang tinggal di Bandung", "Tinggal di Jakarta", "Tinggal di Bandung", True),
    ("我搬到了深圳", "住在广州", "住在深圳", True),
    ("会议推迟到5月20日", "会议在5月5日", "会议在5月20日", True),
    ("I don't drink coffee anymore", "Drinks coffee", "No longer drinks coffee", True),
    ("Ya no bebo café", "Bebe café", "Ya no bebe café", True),
    ("Ich bin nicht mehr bei Acme", "Ist bei Acme", "Ist nicht mehr bei Acme", True),
    ("No coffee after 15:00 anymore", "Drinks coffee", "Drinks no coffee after 15:00", False),
    ("Mi hermana vive ahora en Cádiz", "Vive en Sevilla", "Hermana vive en Cádiz", False),
    ("Jetzt wiege ich am 2026-11-08 81 kg", "Gewicht 2026-11-01 82 kg", "Gewicht 2026-11-08 81 kg", False),
    ("Dziś ciśnienie 130", "Ciśnienie 140", "Ciśnienie 130", False),
    ("I live in a shared flat", "Lives in Leeds", "Lives in a shared flat", False),
    ("J'habite à deux pas de la gare", "Habite à Lyon", "Habite à deux pas de la gare", False),
    ("I live in Germany, which SIM card?", "Lives in Berlin", "Lives in Germany", False),
    ("Ich heiße Jonas, nicht Jonathan", "Heißt Jonathan", "Heißt Jonas", True),
    ("My friends call me Annie", "The user's name is Anna", "The user is called Annie by friends", False),
    ("No, invoice 17 is paid", "Invoice 16 is paid", "Invoice 17 is paid", False),
    ("Nee, kamer 3 is vrij", "Kamer 2 is vrij", "Kamer 3 is vrij", False),
    ("Nein, 12 Gäste sind eingeladen", "10 Gäste sind eingeladen", "12 Gäste sind eingeladen", True),
    # what may be true beside it
    ("I'm pregnant now!", "The user is allergic to walnuts", "The user is pregnant", False),
    ("Actually, I'm a nurse", "The user is vegan", "The user is a nurse", False),
    ("My brother is married now", "My brother is a doctor", "My brother is married", False),
    ("My sister is now a lawyer", "The user's sister is deaf", "The user's sister is a lawyer", False),
    ("Ich bin jetzt Rentnerin", "Die Nutzerin ist Veganerin", "Die Nutzerin ist Rentnerin", False),
    ("Je suis enceinte maintenant", "L'utilisatrice est allergique", "L'utilisatrice est enceinte", False),
    ("Ahora estoy jubilado", "El usuario está casado", "El usuario está jubilado", False),
    ("My sister moved to Leeds", "Lives in York", "She lives in Leeds", False),
    ("My sister turned 28", "The user is 30 years old", "She is 28 years old", False),
    ("Seine Tochter hat am 3. Mai Geburtstag", "Geburtstag am 5. Juni", "Ihr Geburtstag ist am 3. Mai", False),
    ("Ma sœur a déménagé à Lyon", "Habite à Paris", "Elle habite à Lyon", False),
    ("Mi hermano ahora vive en Vigo", "Vive en Sevilla", "Su hermano vive en Vigo", False),
    ("I turned 31 today", "The user is 30 years old", "The user is 31 years old", True),
    ("Ich bin jetzt nach Rom gereist", "Wohnt in Köln", "Ist nach Rom gereist", False),
    ("Nein, nach Italien fahren wir im Mai", "Wohnt in Köln", "Nach Italien geht es im Mai", False),
    ("Ich bin doch nicht umgezogen, sondern nach Rom gezogen", "Wohnt in Köln", "Ist nach Rom gezogen", True),
    ("Our vet is Shaw now", "The vet is Malik", "The vet is Shaw", True),
    ("No, the landlord is Novak", "The landlord is Huber", "The landlord is Novak", True),
    ("Actually the viewing is on Friday", "The viewing is on Monday", "The viewing is on Friday", True),
    ("Der Termin ist jetzt Freitag", "Der Termin ist Montag", "Der Termin ist Freitag", True),
    ("The kayak is blue, not red", "The kayak is red", "The kayak is blue", True),
    ("Wifi password: kiwi, not mango", "Wifi password: mango", "Wifi password: kiwi", True),
    ("I've now paid invoice 17", "Paid invoice 16", "Paid invoice 17", False),
    ("Jetzt ist Rechnung 17 bezahlt", "Rechnung 16 bezahlt", "Rechnung 17 bezahlt", False),
    ("I paid invoice 17, not invoice 16", "Paid invoice 16", "Paid invoice 17", True),
    ("The meeting moved to 15:00", "Meeting at 14:00", "Meeting at 15:00", True),
    ("I moved to Team Blue", "Lives in York", "Moved to Team Blue", False),
    ("I moved to Leeds with my team", "Lives in York", "Moved to Leeds with my team", True),
    ("I'm on page 45 of Emma now", "On page 30 of Emma", "On page 45 of Emma", True),
]


def test_a_plain_correction_needs_no_mark_of_the_old_fact(model_app, model_server):
    for number, (message, old, new, is_corrected) in enumerate(PLAIN):
        talk = Talk(model_app, model_server, f"s{number}")
        talk.hear(old, reply=digest_of(fact(old, 1, old, scope="user")))
        talk.hear(message, reply=digest_of(fact(new, 2, message, scope="user")))
        assert set(talk.texts()) == ({new} if is_corrected else {old, new}), message


def test_a_model_ends_no_fact_that_it_was_not_shown(talk):
    talk.hear("Hello.", reply=digest_of())
    texts = [f"The budget of department {number} was approved at {number} million" for number in range(60)]
    for text in texts:
        good(talk.client.post("/api/facts", json={"session_id": "s", "text": text, "importance": 1}))
    ids = [item["id"] for item in talk.facts()]
    assert len(ids) == 60

    def ending_all(body: Any) -> Any:
        return digest_of(fact("Bought a kayak", 2, "I bought a kayak", supersedes=[f"F{number}" for number in ids]))

    talk.hear("I bought a kayak. The departments are closed now.", reply=ending_all)
    shown = talk.digests()[-1][-1]["content"]
    not_shown = {text for text in texts if text not in shown}
    assert 0 < len(not_shown) < 60
    assert set(talk.texts()) == {"Bought a kayak", *not_shown}


def test_who_moved_to_a_company_lives_where_they_did(talk):
    talk.hear("I live in York.", reply=digest_of(fact("Lives in York", 1, "I live in York")))
    talk.hear("I moved to Acme.", reply=digest_of(fact("Moved to Acme", 2, "I moved to Acme", category="work")))
    assert talk.texts() == ["Moved to Acme", "Lives in York"]


def test_the_mini_model_sees_which_facts_were_said_elsewhere(model_app, model_server):
    kitchen = Talk(model_app, model_server, "kitchen", "ada")
    words = "The budget is 900 euros"
    kitchen.hear(words, reply=digest_of(fact(words, 1, scope="user", importance=5)))
    good(kitchen.client.post("/api/facts", json={"text": "Is called Ada", "user_id": "ada"}))
    garden = Talk(model_app, model_server, "garden", "ada")
    garden.hear("The garden may cost 300.", reply=digest_of())
    kitchen.hear("The oven costs 400.", reply=digest_of())
    lines = [
        re.findall(r"\] (.*) \(said [\d-]{10} [\d:]{5}(.*)\)$", prompt[-1]["content"], re.M)
        for prompt in garden.digests()[-2:]
    ]
    assert list(map(dict, lines)) == [
        {words: " elsewhere", "Is called Ada": ""},
        {words: "", "Is called Ada": ""},
    ]


def test_what_a_person_pinned_stays_pinned_when_it_is_corrected(talk):
    talk.hear("I live in Bergen.", reply=digest_of(fact("Lives in Bergen", 1, "I live in Bergen")))
    good(talk.client.patch(f"/api/facts/{talk.facts()[0]['id']}", json={"pinned": True}))
    talk.hear("No, I moved to Oslo.", reply=digest_of(fact("Lives in Oslo", 2, "I moved to Oslo")))
    assert [(item["text"], item["pinned"]) for item in talk.facts()] == [("Lives in Oslo", True)]


def test_nobody_elses_facts_can_be_superseded(model_app, model_server):
    ada = Talk(model_app, model_server, "ada-s", "ada")
    bob = Talk(model_app, model_server, "bob-s", "bob")
    ada.hear("I live in Bergen.", reply=digest_of(fact("Lives in Bergen", 1, "I live in Bergen", scope="user")))
    number = ada.facts()[0]["id"]
    bob.hear("I live in Oslo.", reply=digest_of(fact("Lives in Oslo", 1, "I live in Oslo", supersedes=[number])))
    assert ada.texts() == ["Lives in Bergen"]


# -- whose they are


def test_a_persons_facts_hold_in_their_other_sessions_only(model_app, model_server):
    one = Talk(model_app, model_server, "one", "ada")
    one.hear(
        "I live in Bergen. This report is due Monday.",
        reply=digest_of(
            fact("Lives in Bergen", 1, "I live in Bergen", scope="user"),
            fact("Report due Monday", 1, "This report is due Monday"),
        ),
    )
    two = Talk(model_app, model_server, "two", "ada")
    three = Talk(model_app, model_server, "three", "bob")
    four = Talk(model_app, model_server, "four")
    for other in (two, three, four):
        other.say("hello")
    assert one.texts() == ["Report due Monday", "Lives in Bergen"]
    assert two.texts() == ["Lives in Bergen"]
    assert three.texts() == four.texts() == []
    assert "Lives in Bergen" in two.prompt("What is the weather where I live?")
    for other in (three, four):
        assert "Bergen" not in other.prompt("What is the weather where I live?")
    assert read_all(one.client, "/api/facts", user_id="bob") == []
    assert len(read_all(one.client, "/api/facts", user_id="ada")) == 2


def test_a_session_without_a_user_keeps_its_facts_to_itself(model_app, model_server):
    one, two = Talk(model_app, model_server, "one"), Talk(model_app, model_server, "two")
    one.hear("I live in Bergen.", reply=digest_of(fact("Lives in Bergen", 1, "I live in Bergen", scope="user")))
    assert "Bergen" not in two.prompt("Where do I live?")
    assert two.facts() == [] and one.texts() == ["Lives in Bergen"]


def test_no_message_corrects_what_the_person_edited_after_it(talk):
    talk.hear("I live in Bergen.", reply=digest_of(fact("Lives in Bergen", 1, "I live in Bergen")))
    (old,) = talk.facts()
    talk.say("Actually, I live in Oslo.")
    edited = good(talk.client.patch(f"/api/facts/{old['id']}", json={"text": "Lives in Turku", "pinned": True}))
    assert edited["valid_from"] > old["valid_from"]
    shown = talk.prompt("Where is home?")
    assert "Lives in Turku" in shown  # although its message is in sight
    talk.digest(digest_of(fact("Lives in Oslo", 2, "I live in Oslo", supersedes=[old["id"]])))
    assert talk.texts() == ["Lives in Turku"]  # what was said before the edit is over


def test_what_an_old_conversation_says_is_superseded_by_what_was_said_since(model_app, model_server):
    now, old = (Talk(model_app, model_server, name, "ada") for name in ("now", "old"))
    home, tea = said("I live in Oslo.", created_at="2026-05-01T10:00:00Z"), {"scope": "user"}
    now.hear(home, reply=digest_of(fact("Lives in Oslo", 1, "I live in Oslo", **tea)))
    now.hear("Only tea for me now.", reply=digest_of(fact("Drinks only tea", 2, "Only tea for me", **tea)))
    drinks = now.facts()[0]["id"]
    stated = (
        fact("Lives in Bergen", 1, "I live in Bergen", **tea),  # one has one home, whatever the model says
        fact("Drinks coffee", 1, "I drink coffee", supersedes=[drinks], **tea),
        fact("Has a dog", 1, "I have a dog", **tea),
    )
    old.hear(
        said("I live in Bergen, I drink coffee and I have a dog.", created_at="2024-05-01T10:00:00Z"),
        reply=digest_of(*stated),
    )
    assert sorted(old.texts()) == ["Drinks only tea", "Has a dog", "Lives in Oslo"]
    then = read_all(old.client, "/api/facts", user_id="ada", as_of="2025-01-01T00:00:00Z")
    assert sorted(item["text"] for item in then) == ["Drinks coffee", "Has a dog", "Lives in Bergen"]


def test_the_mini_model_sees_the_known_facts_that_the_messages_may_change(model_app, model_server):
    talk = Talk(model_app, model_server, "s", "ada")
    state = partial(talk.client.post, "/api/facts")
    for number in range(60):
        good(state(json={"user_id": "ada", "text": f"Colleague {number} sits on floor {number % 7}", "importance": 5}))
    good(state(json={"user_id": "ada", "text": "The billing service pins SQLAlchemy 2.0.32", "importance": 1}))
    talk.hear("Morning! How do I cook leeks?", "I raised SQLAlchemy to 2.0.36 in the billing service today.")
    sent = talk.digests()[-1][-1]["content"]
    assert "pins SQLAlchemy 2.0.32" in sent and "Colleague" in sent
    assert "Colleague 3 " not in sent or "Colleague 4 " not in sent  # as many as the budget allows


# -- what the person does


def test_the_person_adds_edits_pins_and_forgets(client):
    body = {"user_id": "ada", "text": "Allergic to nuts", "category": "constraint", "importance": 5}
    made = good(client.post("/api/facts", json=body))
    assert (made["scope"], made["session_id"], made["quote"], made["source_message_id"]) == ("user", None, "", None)

    address = f"/api/facts/{made['id']}"
    good(client.patch(address, json={}))  # changes nothing and leaves no trace
    assert "as ?user_id=NAME" in error(client.patch(address, json={"pinned": True, "user_id": "ada"}), 422)["message"]
    changes = {"text": "Allergic to peanuts", "pinned": True, "category": "identity"}
    changed = good(client.patch(address, json=changes))
    assert changed == {**changed, **changes, "importance": 5}
    assert [item["id"] for item in read_all(client, "/api/facts", user_id="ada", category="identity")] == [made["id"]]
    assert read_all(client, "/api/facts", user_id="ada", category="constraint") == []

    history = good(client.get(f"{address}/history"))["items"]
    assert [(item["action"], item["author"], item["text"], item["pinned"]) for item in history] == [
        ("made", "person", "Allergic to nuts", False),
        ("edited", "person", "Allergic to peanuts", True),
    ]
    assert client.delete(address).status_code == 200
    for gone in (address, *(f"/api/facts/{number}" for number in (0, 2**63, 10**40, "x", -1))):
        error(client.delete(gone), 404)
        error(client.patch(gone, json={"pinned": True}), 404)
        error(client.get(f"{gone}/history"), 404)
    assert read_all(client, "/api/facts", user_id="ada") == []


def test_a_correction_that_is_undone_leaves_what_it_corrected_and_the_summary_too(talk):
    before = {"topic": "Life in Bergen", "data": ["Ada lives in Bergen with a cat", "Likes tea"]}
    after = {"topic": "Life in Oslo", "data": ["Likes tea", "Ada now lives in Oslo"], "open_questions": ["When?"]}
    talk.hear("I live in Bergen.", reply=digest_of(fact("Lives in Bergen", 1, "I live in Bergen"), **before))
    talk.hear("No, I live in Oslo.", reply=digest_of(fact("Lives in Oslo", 2, "I live in Oslo"), **after))
    (wrong,) = talk.facts()
    receipt = good(talk.client.delete(f"/api/facts/{wrong['id']}?restore=true"))
    assert (wrong["text"], receipt["erased"]["facts"]) == ("Lives in Oslo", 1)
    sections = talk.summary()["latest"]["sections"]
    assert {name: sections[name] for name in before} == before and sections["open_questions"] == ["When?"]
    assert "Oslo" not in talk.prompt("Where do I live?").partition("<facts>")[0]
    (held,) = talk.facts()
    assert (held["text"], held["valid_to"], held["superseded_by"]) == ("Lives in Bergen", None, None)
    good(talk.client.delete(f"/api/facts/{held['id']}?restore=true"))  # it corrected nothing
    assert talk.facts() == []


def test_a_correction_that_is_undone_leaves_what_only_shares_its_figure(talk):
    old, new = "The kayak costs 400 euros", "The kayak costs 480 euros"
    rent = "The rent is 480 euros"
    talk.hear(f"{old}.", reply=digest_of(fact(old, 1, old), data=[old, rent]))
    talk.hear(f"No, {new}.", reply=digest_of(fact(new, 2, new), data=[new, rent]))
    (wrong,) = talk.facts()
    good(talk.client.delete(f"/api/facts/{wrong['id']}?restore=true"))
    assert talk.summary()["latest"]["sections"]["data"] == [old, rent]


def test_a_correction_of_two_facts_that_is_undone_leaves_both_and_tells_it(talk):
    talk.hear(
        "I own a Fiat and a bike.", reply=digest_of(*(fact(f"Owns a {one}", 1, f"a {one}") for one in ("Fiat", "bike")))
    )
    both = talk.facts()
    marks = [one["id"] for one in both]
    boat = fact("Owns a boat", 2, "I own a boat", supersedes=marks)
    talk.hear("I sold both, now I own a boat.", reply=digest_of(boat, data=["Owns a boat"]))
    (wrong,) = talk.facts()
    good(talk.client.delete(f"/api/facts/{wrong['id']}?restore=true"))
    assert talk.texts() == [one["text"] for one in both]
    assert talk.summary()["latest"]["sections"]["data"] == ["Owns a Fiat; Owns a bike"]
    for mark in marks:
        history = good(talk.client.get(f"/api/facts/{mark}/history"))["items"]
        assert [one["action"] for one in history] == ["made", "superseded", "reopened"]


@pytest.mark.parametrize(("scope", "changed"), [("session", {"one"}), ("user", {"one", "two"})])
def test_summaries_say_the_new_words_of_an_edited_fact_where_it_holds(model_app, model_server, scope, changed):
    names = {"one": "ada", "two": "ada", "three": "bob"}
    talks = {name: Talk(model_app, model_server, name, user) for name, user in names.items()}
    sections = {"topic": "Home town: Bergen", "data": ["Home town: Bergen.", "It rains in Bergen"]}
    for talk in talks.values():
        talk.say("Hello.")
        good(talk.client.put(talk.address, json={"sections": sections}))
    client = talks["one"].client
    made = good(client.post("/api/facts", json={"session_id": "one", "text": "Home town: Bergen"}))
    for change in ({"scope": scope}, {"text": "Home town: Turku\n" + "x" * 480}, {"pinned": True}):
        good(client.patch(f"/api/facts/{made['id']}", json=change))
    for name, talk in talks.items():
        latest, prompt, expected = talk.summary()["latest"], talk.prompt("Hello?"), name in changed
        assert (latest["version"], latest["author"]) == ((2, "correction") if expected else (1, "person"))
        assert ("Home town: Bergen" not in prompt) is expected
        assert ("Home town: Turku" in prompt) is expected
        assert "It rains in Bergen" in prompt
        good(talk.client.put(talk.address, json={"sections": latest["sections"]}))  # no item is too long


def test_a_fact_for_one_session_and_one_for_all(client):
    for session in ("one", "two"):
        append(client, session, [said("hello")], user_id="ada")
    good(client.post("/api/facts", json={"session_id": "one", "text": "Only here"}))
    number = good(client.post("/api/facts", json={"session_id": "one", "text": "Everywhere"}))["id"]
    assert read_all(client, "/api/facts", session_id="two") == []
    good(client.patch(f"/api/facts/{number}", json={"scope": "user"}))
    assert [item["text"] for item in read_all(client, "/api/facts", session_id="two")] == ["Everywhere"]
    stated = good(client.post("/api/facts", json={"user_id": "ada", "text": "Likes tea"}))["id"]
    refused = error(client.patch(f"/api/facts/{stated}", json={"scope": "session"}), 422)
    assert (refused["code"], refused["param"]) == ("fact_has_no_session", "scope")


def test_a_fact_that_cannot_be_stated(shared):
    append(shared, "s", [said("hello")], user_id="ada")
    for body, status, named in (
        ({"text": "x"}, 422, "owner_needed"),
        ({"text": "x", "session_id": "s", "user_id": "bob"}, 404, "session_not_found"),
        ({"user_id": "ada"}, 422, "text"),
        ({"user_id": "ada", "text": "x" * 501}, 422, "text"),
        ({"user_id": "ada", "text": "x", "importance": 6}, 422, "importance"),
        ({"user_id": "ada", "text": "x", "category": "gossip"}, 422, "category"),
    ):
        refused = error(shared.post("/api/facts", json=body), status)
        assert named in (refused["code"], refused.get("param"))
    assert read_all(shared, "/api/facts", user_id="ada") == []
    for ids in (None, [], [0], ["1"], [1.5], [2**63], list(range(1, 1002))):
        assert error(shared.post("/api/facts/forget", json={"ids": ids}), 422)["param"].startswith("ids")


# -- all of a person's facts


def state(client: FlaskClient, *texts: str, **more: Any) -> list[int]:
    """State facts; their ids."""
    return [good(client.post("/api/facts", json={"text": text, **more}))["id"] for text in texts]


def test_facts_are_found_by_their_words_newest_first(client):
    texts = ["Green TEA", "Drinks tea_time", "100% coffee", "Любит чай", "Ünal's friend"]
    state(client, *texts, user_id="ada")
    state(client, "Bob's green tea, 100% milk-free чай of ünal tea_", user_id="bob")
    for q, found in {
        "tea": texts[:2],
        "TEA green": texts[:1],
        "100%": ["100% coffee"],
        "tea_": ["Drinks tea_time"],
        "ЧАЙ": ["Любит чай"],
        "ünal": ["Ünal's friend"],
        "  ": texts,
    }.items():
        items = read_all(client, "/api/facts", user_id="ada", q=q, limit=2)
        assert [item["text"] for item in items][::-1] == found


# -- an end of its own


def at_hand(client: FlaskClient) -> tuple[list[str], list[str], list[str]]:
    """Return the facts that are listed, those that a turn shows, and those that a search finds."""
    listed = [item["text"] for item in read_all(client, "/api/facts", user_id="ada")]
    turn = good(client.post("/api/chat", json={"session_id": "s", "user_id": "ada", "message": "Where am I in Rome?"}))
    hits = good(client.get("/api/search?q=Rome&kind=fact&user_id=ada"))["results"]
    return listed, [item["text"] for item in turn["memory"]["facts"]], [hit["text"] for hit in hits]


def test_a_fact_is_gone_at_its_end_before_a_job_closes_it(bench):
    client, clock, rome = bench.client, bench.clock, {"user_id": "ada", "text": "Is in Rome"}
    ends = clock.now + timedelta(hours=1)
    fact_id = good(client.post("/api/facts", json={**rome, "expires_at": ends.isoformat()}))["id"]
    with_real_clock = {"user_id": "ada", "text": "Is in Rome for good", "expires_at": "2999-01-01T00:00:00Z"}
    good(client.post("/api/facts", json=with_real_clock))
    both = {"Is in Rome", "Is in Rome for good"}
    assert set(at_hand(client)[0]) == set(at_hand(client)[1]) == both
    clock.tick(3600)
    assert at_hand(client) == (["Is in Rome for good"],) * 3
    assert good(client.get("/api/users/ada"))["facts"] == 1
    assert bench.engine.job_queue.run_due(["fact_ends"]) == 1
    last = good(client.get(f"/api/facts/{fact_id}/history"))["items"][-1]
    assert (last["action"], last["author"]) == ("ended", "model")
    before = (ends - timedelta(minutes=1)).isoformat()
    then = read_all(client, "/api/facts", user_id="ada", as_of=before)
    assert {item["text"]: item["valid_to"] for item in then} == {
        "Is in Rome": ends.isoformat(),
        "Is in Rome for good": None,
    }


def test_an_end_is_set_moved_and_taken_away(bench):
    client, clock = bench.client, bench.clock
    made = good(client.post("/api/facts", json={"user_id": "ada", "text": "Is in Rome"}))
    assert made["expires_at"] is None
    address = f"/api/facts/{made['id']}"
    soon, later = (clock.now + timedelta(hours=hours) for hours in (1, 2))
    never = "9999-12-31T23:59:59.999999+00:00"
    assert good(client.patch(address, json={"expires_at": never}))["expires_at"] == never
    assert good(client.patch(address, json={"expires_at": later.isoformat()}))["expires_at"] == later.isoformat()
    assert good(client.patch(address, json={"expires_at": soon.isoformat()}))["expires_at"] == soon.isoformat()
    good(client.patch(address, json={"expires_at": None}))
    clock.tick(7200)
    bench.engine.job_queue.run_due(["fact_ends"])
    assert at_hand(client)[0] == ["Is in Rome"]


@pytest.mark.parametrize("days", [6, 40])
def test_a_fact_that_is_valid_again_is_closed_at_its_end(bench, days):
    client, clock = bench.client, bench.clock
    at = [(clock.now + timedelta(days=number)).isoformat() for number in (5, 30)]
    for text, end in zip(("Is in Rome", "Rents a garage"), at, strict=True):
        made = good(client.post("/api/facts", json={"user_id": "ada", "text": text, "expires_at": end}))
    good(client.patch(f"/api/facts/{made['id']}", json={"text": "Owns a garage", "expires_at": None}))
    clock.tick(days * 86_400)
    bench.engine.job_queue.run_due(["fact_ends"])
    good(client.delete(f"/api/facts/{made['id']}?restore=true&user_id=ada"))
    assert at_hand(client)[0] == (["Rents a garage"] if days < 30 else [])
    clock.tick(30 * 86_400)
    bench.engine.job_queue.run_due(["fact_ends"])
    then = read_all(client, "/api/facts", user_id="ada", as_of=at[0])
    assert [(one["text"], one["valid_to"]) for one in then] == [("Rents a garage", at[1])]


@pytest.mark.parametrize(
    ("words", "until", "end"),
    [
        ("I am in Rome until Friday.", "2024-03-08", "2024-03-10T00:00:00+00:00"),
        ("I am in Rome until Friday.", "2024-03-01", None),  # over before it was said
        ("I am in Rome until Friday.", "Friday", None),
        ("I live in Rome.", "2024-03-08", None),  # nobody named a time
    ],
)
def test_a_plan_ends_when_the_person_says_so(talk, words, until, end):
    told = fact(words, 1, until=until)
    talk.hear(said(words, created_at="2024-03-05T10:00:00Z"), reply=digest_of(told))
    everything = read_all(talk.client, "/api/facts", session_id="s", as_of="2024-03-05T12:00:00Z")
    assert [item["expires_at"] for item in everything] == [end]
    assert len(talk.facts()) == (end is None)  # it is long over


@pytest.mark.parametrize("until", ["9999-12-31", "9999-12-30", "9999-01-01"])
def test_the_last_day_of_the_calendar_is_no_end(talk, until):
    told = fact("I rent a garage from today on", 1, until=until)
    talk.hear("I rent a garage from today on.", reply=digest_of(told))
    assert len(talk.facts()) == 1


def test_a_correction_counts_once_a_clock_that_was_put_back_has_passed_what_it_corrects(bench):
    """Words that are older than a fact, as those of an import are, do not correct it; these can't be told from them."""

    def says(words: str, session: str = "s") -> str:
        reply = str(chat(bench.client, words, session_id=session, user_id="ada")["reply"])
        bench.clock.tick(0.001)
        bench.engine.job_queue.run_due()
        return reply

    def towns() -> set[str]:
        facts = str(read_all(bench.client, "/api/facts", user_id="ada"))
        return {town for town in ("Tallinn", "Lyon") if town in facts}

    ahead = bench.clock.now
    says("I live in Tallinn.")
    bench.clock.now = ahead - timedelta(days=3)
    says("We moved: I live in Lyon now.")
    assert "Tallinn" in towns()
    bench.clock.now = ahead + timedelta(minutes=1)
    says("Yes, we moved to Lyon.")
    assert towns() == {"Lyon"} and "Lyon" in says("Where do I live?", "other")
