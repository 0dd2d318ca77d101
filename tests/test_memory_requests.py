"""What a person asks not to remember, or to forget: in any chat, with any model, at once or with the next summary."""

import json
import time
from typing import Any

import pytest

from memory.sessions.memory_requests import MessageWords, asks_to_forget, asks_to_keep_out, requests_to_remember
from models.messages import KEPT_OUT_TEXT
from tests.http import append, chat, find, good, said
from tests.jobs import jobs_done
from tests.knowledge import Talk, digest_of, fact
from tests.model_server import prompts

ADA = {"user_id": "ada"}
KEEP_OUT = """
Du musst das nicht speichern, ok?
You don't need to remember this, my pin is 4711, what is a good pin?
Du musst dir das nicht merken, meine PIN ist 4711, ist die sicher genug?
No hace falta que guardes esto, mi clave es 1234, ¿es segura la clave?
No tienes que recordar esto.
please don't remember this: my pin is 4711
dont remember my weight, 71 kilos
Don't save this but I failed statistics
My salary is 90k, don't remember it.
I drink too much (don't keep this in memory)
off the record, I hate my boss
dont write that down: I failed maths
não guardes isto: chumbei a matemática
onthoud dit niet: ik ben gezakt
nie zapisuj tego: oblałem egzamin
Keep this out of your memory: 1234
Merk dir das bitte nicht: ich bin schwanger
Ich verdiene 3000, bitte nicht speichern
Speichere diese Nachricht nicht
Das hier musst du dir nicht merken
dont save this one, it's private
No recuerdes esto: mi clave es 99
no guardes mis datos de tarjeta
Ne retiens pas ça, mon code est 12
ne mémorisez pas mon adresse
Non ricordare questo: il mio pin è 5
不要记住这个：我的密码是1234
Не запоминай это: мой пароль 123
You don't have to remember this, but I'm broke.
This stays between us: I quit.
Don't add this to your memory: I'm pregnant.
Das bleibt unter uns: ich kündige.
N'enregistre pas ceci : je suis enceinte.
Ne te souviens pas de ça : j'ai menti.
Ça reste entre nous : je démissionne.
No te acuerdes de esto: mentí.
No lo guardes: mi PIN es 12.
Non tenere a mente questo: sono incinta.
Resti tra noi: mi licenzio.
Não se lembre disto: meu código é 8812.
Isto fica entre nós: vou pedir demissão.
Dit blijft tussen ons: ik neem ontslag.
Je hoeft dit niet te onthouden: ik ben moe.
Nie pamiętaj tego: skłamałem.
Nie musisz tego zapamiętywać: jestem spłukany.
Не надо это запоминать: я на мели.
Это останется между нами: я увольняюсь.
别把这个记下来：我挂科了。
这个不用记：我没钱了。
I'm quitting, but keep it between us.
No need to save this, but my PIN is 4.
Nimm das nicht auf: mein Code ist 12.
S'il te plaît, n'enregistre pas ça.
Non salvarlo, è privato.
Пожалуйста, не надо этого записывать.
"""
FORGET = """
pls don't remember that
Vergiss, dass ich Vegetarier bin
忘记我刚才说的
请不要再記得我的地址
Borra lo de la deuda, por favor.
Zapomnij o sprawie z lekarzem.
忘了我女儿怀孕的事吧。
義母の薬の話は忘れてください。
딸 임신 이야기는 잊어 줘.
Kızımın hamileliğini unut lütfen.
انسَ موضوع حمل ابنتي.
Lupakan soal kehamilan anakku.
Quên chuyện con gái tôi có thai đi.
Ξέχνα αυτό που είπα για την αδερφή μου.
תשכח ממה שאמרתי על אחותי.
मेरी बहन वाली बात भूल जाओ।
موضوع بارداری دخترم را فراموش کن.
ลืมเรื่องที่ลูกสาวฉันท้องไปเถอะ
¿Puedes borrar lo de las pastillas?
Quiero que olvides lo del trabajo.
Erase the part on my salary, please.
Vergessen Sie bitte, was ich über Jan gesagt habe.
Lösch das von gestern über meinen Chef.
Tu peux effacer le truc sur mon salaire ?
Efface l'info sur ma sœur.
Puoi cancellare la storia del debito?
Pode apagar aquilo do meu chefe?
Apague a parte sobre a minha irmã.
Usuń informację o moim długu.
Удали историю с врачом.
请把我女儿怀孕的事忘掉。
別再提我妹妹生病的事，忘了吧。
さっきの借金の話、忘れてくれる？
昨日言ったことを消してください。
그 얘기는 지워 줘.
Borç meselesini unutun.
Patronum hakkında söylediklerimi sil.
احذف ما قلته عن أخي.
Забудьте, що я казав про борг.
Tolong hapus yang kubilang tentang utang.
Hãy xóa điều tôi nói về món nợ.
Διέγραψε ό,τι είπα για τη δουλειά.
תמחק את מה שסיפרתי על הבוס.
उधार वाली बात भूल जाइए।
حرفم درباره‌ی بدهی را پاک کن.
ลบเรื่องหนี้ที่ฉันบอกไป
Forget Anna's phone number, please.
Olvida la dirección de Marta.
Oublie le prix du vol.
Dimentica il numero della carta.
Esquece o valor do aluguel, não quero isso guardado.
Vergeet alsjeblieft haar naam.
私の古い住所を忘れて。
상사에 대해 말한 것은 잊어버려.
انسَ عنواني القديم.
Ξέχασε την παλιά μου διεύθυνση.
שכח את הכתובת הישנה שלי.
मेरा पुराना पता भूल जाओ।
Lupakan alamat lamaku.
آنچه درباره رئیسم گفتم فراموش کن.
ลืมที่อยู่เก่าของฉันไปเลย
Hãy quên địa chỉ cũ của tôi đi.
"""
NEITHER = """
Du musst das nicht speichern, der Editor macht das?
You don't have to save this, the editor does that?
No hace falta que guardes esto, ¿lo hace el editor?
Не нужно это запоминать, редактор сам сохранит?
私の傘を忘れてきた。
내 우산을 잊어버렸어.
نسيت عنواني.
Ξέχασα την τσάντα μου.
שכחתי את התיק שלי.
मैं अपना पता भूल गया।
Aku lupa alamatku.
Tôi quên ví của tôi.
Ik kan dit niet onthouden.
Tu ne te souviens pas de ça ?
Non mi ricordo di questo.
Ela não se lembra disto.
Between us there are ten years.
Между нами десять лет разницы.
How do we split it between us three?
The fence? It's between us and the neighbours.
I don't have to keep it, the shop takes it back.
You don't need to keep it refrigerated, do you?
You don't have to remember this rule, the compiler knows it.
Do not add it to the memory card.
Schreib das nicht auf Englisch, sondern auf Deutsch.
Nimm das nicht auf die leichte Schulter.
Pourquoi Excel n'enregistre pas mon fichier ?
Mon frigo ne conserve pas cette salade.
Mi madre dice que no lo apuntes en el cuaderno.
Quiero que no conste en el acta el nombre de mi hermano.
Voglio che resti tra noi a cena.
O telemóvel da Ana não grave isso.
Je hoeft dit niet te bewaren in de koelkast.
Lekarz mówi, że nie trzeba tego zapisywać.
Почему не нужно сохранять файл?
他不用记录我们的时间。
这是我们两个之间的约定，每周跑步。
I don't remember where I put my keys
you don't remember my name?
Don't save this file as CSV
don't forget to call mom
I'll never forget that day
They don't keep it in stock
remember that I park on level 3
Why doesn't it save this setting?
Ich merke das nicht
ich kann mir das nicht merken, hilf mir
Je ne note pas mes rêves
No recuerdo dónde vivo
non riesco a ricordare questo nome
我忘了我的钥匙
别忘了我的生日
Я не запоминаю имена
No olvides lo de la cita.
Se me olvidó lo del pan.
Vergiss nicht das mit dem Termin.
Ich habe das mit dem Arzt vergessen.
N'oublie pas l'histoire de l'assurance.
Non dimenticare la faccenda del dentista.
Não esqueças a história do seguro.
Vergeet niet de afspraak.
Nie zapomnij o wizycie.
Не забудь про врача.
别忘了我女儿的生日。
薬のことを忘れないでください。
薬を飲むのを忘れてしまった。
약 먹는 거 잊지 마세요.
Randevuyu unutma.
لا تنسَ موعد الطبيب.
Не забудь про лікаря.
Jangan lupakan soal janji itu.
Đừng quên chuyện hẹn bác sĩ.
Μην ξεχάσεις αυτό που είπα.
אל תשכח את התור.
दवा लेना मत भूलना।
قرار دکتر را فراموش نکن.
อย่าลืมเรื่องนัดหมอ
Nunca olvidaré lo de aquel verano.
No te olvides de lo del seguro.
Olvidé lo del banco.
I forget the name of the bit about whales.
We often forget the small things.
Vergiss die Milch nicht!
Mi abuela olvida los nombres.
Oublie pas le pain.
J'oublie le nom du village.
Minha avó esquece o fogão ligado.
Zij vergeet de namen.
Vergessen wir nicht die Sache mit der Miete.
Er vergisst das mit dem Schlüssel immer.
J'oublie toujours l'histoire de ce film.
Mi dimentico la storia di Roma.
Esqueci a história toda.
Ik vergeet die dingen altijd.
Zapomniałem o tej wizycie.
Я забыл про врача.
我忘了他女儿的事。
その話は忘れていました。
傘を忘れてきた。
그 얘기는 잊어버렸어요.
Toplantıyı unuttum.
نسيت موضوع العقد.
Я забув про борг.
Aku lupa soal itu.
Tôi quên chuyện đó rồi.
Ξέχασα αυτό που είπες.
שכחתי את מה שאמרת.
मैं वह बात भूल गया।
موضوع را فراموش کردم.
ฉันลืมเรื่องนัด
"""


@pytest.mark.parametrize(
    ("texts", "expected"), [(KEEP_OUT, (True, False)), (FORGET, (False, True)), (NEITHER, (False, False))]
)
def test_requests_are_told_from_other_words_in_many_languages(texts, expected):
    lines = texts.strip().splitlines()
    assert [text for text in lines if (asks_to_keep_out(text), asks_to_forget(text)) != expected] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Don’t remember this: my pin is 4711", (True, False)),
        ("My salary is 90k, please don’t save this.", (True, False)),
        ("Don't note this down: I was fired", (True, False)),
        ("N’enregistre pas ça", (True, False)),
        ("Mon code est 12, ne l’enregistre pas", (True, False)),
        ("Don’t remember that.", (False, True)),
        ("I’ll never forget that day", (False, False)),
        ("J’oublie toujours mes clés", (False, False)),
        ("Je n’enregistre pas mes appels", (False, False)),
    ],
)
def test_typographic_apostrophes_are_read_as_plain_ones(line, expected):
    assert [(asks_to_keep_out(text), asks_to_forget(text)) for text in (line, line.replace("’", "'"))] == 2 * [expected]


def test_a_typographic_apostrophe_in_a_request_to_remember():
    assert requests_to_remember("Don’t forget that I work nights") == ["I work nights"]
    for apostrophe in "'’ʼ":
        assert requests_to_remember(f"Запам{apostrophe}ятай, що я працюю вночі") == ["я працюю вночі"]


QUOTED = """
Can you answer this mail?

> Please forget everything I told you about the budget, and don't save this.
> Kim
---
My shop runs on Django. Why does this fail?

```python
# Don't store this.  Forget what I said about the cache.
x = 1
```
---
Fasse das bitte zusammen:

Von: Kim
Betreff: Budget

Vergiss, was ich zum Budget gesagt habe, und speichere das bitte nicht.
"""


@pytest.mark.parametrize("text", QUOTED.split("---\n"))
def test_nobody_asks_for_it_with_the_words_of_others(text):
    assert (asks_to_keep_out(text), asks_to_forget(text)) == (False, False)
    both = f"{text}\nDon't remember this, and forget what I said about Tom."
    assert (asks_to_keep_out(both), asks_to_forget(both)) == (True, True)


def test_a_message_that_asks_for_it_is_answered_and_in_no_summary_fact_search_or_other_chat(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    secret = "Don't remember this: the zebra is in the cellar."
    model_server.main.queue("A zebra, really?")
    chat(talk.client, secret, session_id="s", **ADA)
    chat(talk.client, "Good night!", session_id="s", **ADA)
    model_server.mini.queue(digest_of(fact("The zebra is in the cellar", 1, "the zebra is in the cellar")))
    jobs_done(talk.client, "summary", "index")
    read = "\n".join(message["content"] for message in talk.digests()[-1])
    assert read.count(KEPT_OUT_TEXT) == 2 and "zebra" not in read and "cellar" not in read
    assert talk.texts() == [] and "cellar" not in json.dumps(find(talk.client, "zebra cellar", **ADA))
    assert "zebra" not in good(talk.client.get("/api/sessions/s"))["title"]
    chat(talk.client, "Where is the zebra?", session_id="new", **ADA)
    assert "cellar" not in json.dumps(prompts(model_server)[-1])
    assert "cellar" in talk.prompt("And now?"), "this chat goes on with it"
    assert good(talk.client.get("/api/sessions/s/messages"))["items"][0]["content"] == secret


def test_the_mini_model_is_not_asked_about_messages_that_are_all_kept_out(model_app, model_server):
    talk = Talk(model_app, model_server)
    talk.say("Off the record: the zebra is in the cellar.")
    jobs_done(talk.client, "summary")
    assert talk.digests() == []
    assert "<summary>\n" not in talk.prompt("Where is it?")
    talk.say("I live in Lyon.")
    model_server.mini.queue(digest_of(fact("Lives in Lyon", 5, "I live in Lyon")))
    jobs_done(talk.client, "summary")
    assert talk.texts() == ["Lives in Lyon"]


def test_a_reply_that_is_appended_later_is_kept_out_with_its_message(model_app, model_server):
    client = model_app.test_client()
    append(client, "s", [said("Off the record: my aunt owns a llama.")], **ADA)
    append(client, "s", [said("A llama for an aunt!", "assistant"), said("My uncle owns a goose.")], **ADA)
    append(client, "s", [said("A goose for an uncle!", "assistant")], **ADA)
    append(client, "t", [said("Off the record: aunt."), said("For an aunt!", "assistant")], **ADA)
    jobs_done(client, "index")
    found = {one["content"] for one in find(client, "aunt uncle llama goose owns", **ADA)}
    assert found == {"My uncle owns a goose.", "A goose for an uncle!"}


def test_events_with_words_do_not_quote_it(model_app):
    client = model_app.test_client()
    start = client.get("/api/events?seconds=0").text.partition("id: ")[2].split("\n")[0]
    append(client, "s", [said("Off the record: my aunt owns a llama."), said("My uncle owns a goose.")], **ADA)
    text = client.get("/api/events", query_string={"seconds": 0, "after": start, "words": "true"}).text
    assert "goose" in text and "llama" not in text and '"content": null' in text


def told(talk: Talk) -> dict[str, int]:
    return {one["text"]: one["id"] for one in talk.facts()}


def digested(talk: Talk, *facts: Any, **more: Any) -> None:
    talk.server.mini.queue({**digest_of(*facts), **more})
    jobs_done(talk.client, "summary", "index")


@pytest.mark.parametrize(
    ("line", "corrects"),
    [
        ("Forget what I said about the horn, it's Rui who plays it", True),
        ("Vergiss, was ich zum Horn gesagt habe: das war falsch. Rui spielt Horn.", True),
        ("Please forget what I said about Rui and the horn", False),
        ("Vergiss, dass Rui Horn spielt", False),
    ],
)
def test_a_request_to_forget_that_says_what_holds_instead_is_a_correction(model_app, model_server, line, corrects):
    talk = Talk(model_app, model_server, user="ada")
    first = "Nuno plays the horn, and we go to Vigo."
    talk.say(first)
    digested(talk, fact("Nuno plays the horn", 1, "Nuno plays the horn", scope="user"))
    (old,) = told(talk).values()
    talk.say(line)
    said_instead = line[max(line.rfind("Rui"), 0) :]
    new = fact("It is Rui", 2, said_instead, scope="user", supersedes=[f"F{old}"])
    digested(talk, new, forget=[f"F{old}"])
    found = [one["content"] for one in find(talk.client, "Nuno Vigo", **ADA)]
    assert (first in found) == corrects
    history = talk.client.get(f"/api/facts/{old}/history")
    assert (history.status_code == 200) == corrects


@pytest.mark.parametrize(
    ("rest", "left"),
    [
        ("The charges are 450 euros", ["The charges are 450 euros"]),
        ("", []),
        ("The rent is 900 euros and the charges are 450 euros", []),  # all of it
        ("The charges are 500 euros", []),  # which nobody said
    ],
)
def test_what_else_a_forgotten_fact_says_stays_known(model_app, model_server, rest, left):
    talk = Talk(model_app, model_server, user="ada")
    told_first = "The rent is 900 euros and the charges are 450 euros"
    talk.say(told_first)
    digested(talk, fact(told_first, 1, scope="user", importance=5))
    (old,) = talk.facts()
    talk.say("Forget the rent. The rest stays.")
    digested(talk, forget=[{"fact": f"F{old['id']}", "rest": rest}])
    facts = talk.facts()
    assert [one["text"] for one in facts] == left
    assert all((one["quote"], one["importance"], one["valid_from"]) == ("", 5, old["valid_from"]) for one in facts)
    assert talk.client.get(f"/api/facts/{old['id']}/history").status_code == 404
    assert find(talk.client, "rent 900", **ADA) == []


@pytest.mark.parametrize(
    ("line", "asked", "is_forgotten"),
    [
        ("My PIN is 4711.", "Forget that my PIN is 4711.", True),
        ("Meine PIN ist 4711.", "Vergiss, dass meine PIN 4711 ist.", True),
        ("Ma voisine Olga boit trop.", "Oublie que ma voisine Olga boit trop.", True),
        ("Моя соседка Ольга пьёт.", "Забудь, что моя соседка Ольга пьёт.", True),
        ("Is 4711 a good PIN?", "Forget the number 4711.", False),
        ("My blue Volvo is a nice car.", "Forget the blue car.", False),
        ("My boss Remo is nice to me.", "Forget that my boss Remo is mean.", False),
    ],
)
def test_what_is_no_known_fact_is_forgotten_with_the_messages_that_say_it(
    model_app, model_server, line, asked, is_forgotten
):
    talk = Talk(model_app, model_server, user="ada")
    talk.hear(line, reply=digest_of())
    talk.hear(asked, reply=digest_of())
    assert (line not in [hit["content"] for hit in find(talk.client, line, **ADA)]) is is_forgotten


@pytest.mark.parametrize(
    "line",
    [
        "Remove my name from the cover letter.",
        "Delete my comments from the code below and return it.",
        "Lösch meine Kommentare aus dem Code, bitte.",
        "Supprime mes commentaires du code, s'il te plaît.",
    ],
)
def test_the_same_request_twice_is_nothing_that_was_said(model_app, model_server, line):
    talk = Talk(model_app, model_server, user="ada")
    for text in (line, "Thanks. And shorter?", line):
        talk.hear(text, reply=digest_of())
    jobs_done(talk.client, "summary", "index")
    messages = good(talk.client.get("/api/sessions/s/messages"))["items"]
    assert [one["content"] for one in messages if one["hidden_at"]] == []


@pytest.mark.parametrize(
    ("line", "forgets"),
    [
        ("Forget that I'm allergic to walnuts. And don't remember this message.", "walnuts"),
        ("Don't remember this, and forget that my PIN is 4711.", "4711"),
        ("Forget that my PIN is 1234. Don't remember this.", None),
        ("Vergiss, dass meine Nachbarin Olga trinkt. Merk dir diese Nachricht nicht.", "Olga"),  # which is no fact
    ],
)
def test_a_message_that_is_kept_out_forgets_by_its_own_words(model_app, model_server, line, forgets):
    talk = Talk(model_app, model_server, user="ada")
    lines = ["I am allergic to walnuts.", "My PIN is 4711.", "Meine Nachbarin Olga trinkt."]
    talk.say(*lines)
    digested(talk, *(fact(text, number, scope="user") for number, text in enumerate(lines[:2], 1)))
    talk.say(line)
    jobs_done(talk.client, "summary", "index")
    assert line not in json.dumps(talk.digests(), ensure_ascii=False)
    left = [text for text in lines if forgets is None or forgets not in text]
    assert sorted(told(talk)) == sorted(set(left) & set(lines[:2]))
    assert {hit["content"] for hit in find(talk.client, " ".join(lines), **ADA)} == set(left)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("more", ["", " Don't remember this."])
def test_what_waits_for_review_is_forgotten_too(model_app, model_server, is_known, more):
    talk = Talk(model_app, model_server, user="ada")
    good(talk.client.put("/api/rules", json={**ADA, "review": True}))
    lines = ["I am allergic to walnuts.", "I live in Oslo."]
    talk.say(*lines)
    digested(talk, *(fact(text, number, scope="user") for number, text in enumerate(lines, 1)))
    if is_known:
        good(talk.client.post("/api/facts", json={**ADA, "text": "Is allergic to walnuts"}))
    talk.say(f"Forget that I'm allergic to walnuts.{more}")
    digested(talk, forget=list(told(talk).values()))
    waiting = good(talk.client.get("/api/facts", query_string={**ADA, "state": "waiting"}))["items"]
    assert [one["text"] for one in waiting] == ["I live in Oslo."] and told(talk) == {}


def test_thousands_of_messages_are_compared_with_what_is_forgotten_in_a_second():
    """They are read while others can't write."""
    words = "the cat walks over a red bridge while people talk about walnuts and allergic food in summer "
    texts = [f"{words[place % 40 :]}{words}{place}" for place in range(3_000)]
    begun = time.process_time()
    assert all(MessageWords("user", text).repeats("Is allergic to walnuts", "allergic to walnuts") for text in texts)
    assert time.process_time() - begun < 2


def test_one_batch_may_ask_to_forget_a_known_fact_and_what_is_none(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    lines = ["I am allergic to walnuts.", "My PIN is 4711."]
    talk.say(*lines)
    digested(talk, fact(lines[0], 1, scope="user"))
    talk.say("Forget that I'm allergic to walnuts.", "Forget that my PIN is 4711.")
    digested(talk, forget=list(told(talk).values()))
    assert told(talk) == {} and find(talk.client, "walnuts PIN 4711", **ADA) == []


def test_what_is_said_after_a_request_to_forget_it_stays(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    talk.say("My PIN is 4711.")
    talk.say("Forget that my PIN is 4711.")
    talk.say("It stays as it was: my PIN is 4711.")
    digested(talk)
    assert [hit["content"] for hit in find(talk.client, "PIN 4711", **ADA)] == ["It stays as it was: my PIN is 4711."]


@pytest.mark.parametrize("left", [{"topic": "Nothing yet"}, {"topic": ""}])
@pytest.mark.parametrize("asked", ["Forget everything about my surgery.", "Vergiss alles über meine Operation."])
def test_a_request_to_forget_all_that_the_summary_has_is_met(model_app, model_server, asked, left):
    talk = Talk(model_app, model_server, user="ada")
    clinics = [
        f"Asks clinic {number} about the knee surgery, which costs {number}50 euros there" for number in range(9)
    ]
    talk.say("I need a knee surgery. " + ". ".join(clinics))
    model_server.mini.queue(digest_of(fact("Needs a surgery", 1, "I need a knee surgery", scope="user"), data=clinics))
    jobs_done(talk.client, "summary", "index")
    talk.say(asked)
    digested(talk, forget=list(told(talk).values()), summary=digest_of(**left)["summary"])
    jobs_done(talk.client, "summary", "index")
    assert told(talk) == {} and find(talk.client, "knee surgery clinic", **ADA) == []
    versions = good(talk.client.get("/api/sessions/s/summary/versions"))
    assert "surgery" not in json.dumps(versions) and talk.summary()["state"] == "current"


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("Never forget that.", ()),
        ("Never mind, forget it. Let us go on.", (fact("Needs a surgery", 1, "I need a knee surgery", scope="user"),)),
    ],
)
def test_a_summary_that_shrinks_is_refused_where_nothing_is_to_be_forgotten(model_app, model_server, line, facts):
    talk = Talk(model_app, model_server, user="ada")
    talk.say("I need a knee surgery.")
    clinics = [f"Clinic {number} costs {number}50 euros for the knee" for number in range(9)]
    model_server.mini.queue(digest_of(*facts, data=clinics))
    jobs_done(talk.client, "summary", "index")
    talk.say(line)
    model_server.mini.queue(digest_of(), digest_of())
    assert talk.digest()["state"] == "pending" and "clinic" in json.dumps(talk.summary()).lower()


@pytest.mark.parametrize(
    "message",
    [said("Forget that the person lives in Oslo.", "assistant"), "Hm?\n> Forget that I live in Oslo."],
    ids=["the assistant", "a quotation"],
)
def test_a_model_cannot_forget_what_nobody_asked_to_forget(model_app, model_server, message):
    talk = Talk(model_app, model_server, user="ada")
    talk.say("I live in Oslo.")
    digested(talk, fact("Lives in Oslo", 1, "I live in Oslo", scope="user"))
    talk.say("It rains.", message)
    digested(talk, forget=list(told(talk).values()))
    assert list(told(talk)) == ["Lives in Oslo"]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("Forget that my PIN is 4711.", ["Is allergic to walnuts", "Lives in Oslo"]),
        ("Forget about the walnuts.", ["Lives in Oslo"]),
        ("Never mind, forget it.", ["Is allergic to walnuts", "Lives in Oslo"]),
        ("Vergiss es einfach.", ["Is allergic to walnuts", "Lives in Oslo"]),
        ("Forget everything you know about me.", []),
        ("Delete everything you know about me.", []),
        ("Lösche alles.", []),
        ("Forget it, that's all.", ["Is allergic to walnuts", "Lives in Oslo"]),
        ("Oublie ça, c'est tout.", ["Is allergic to walnuts", "Lives in Oslo"]),
        ("Oublie tout ce que je t'ai dit.", []),
        ("Forget everything I ever told you.", []),
        ("Oublie tout ce que tu sais sur moi.", []),
    ],
)
def test_a_model_forgets_no_more_than_was_asked(model_app, model_server, asked, left):
    talk = Talk(model_app, model_server, user="ada")
    talk.say("I live in Oslo.", "I am allergic to walnuts.", "Never mind, show me the fjords.")
    facts = (("Lives in Oslo", 1, "I live in Oslo"), ("Is allergic to walnuts", 2, "allergic to walnuts"))
    digested(talk, *(fact(*one, scope="user") for one in facts))
    other = Talk(model_app, model_server, "other", user="ada")
    other.say(asked)
    digested(other, forget=list(told(talk).values()))
    assert sorted(told(talk)) == left
    assert find(talk.client, "fjords", **ADA)[0]["content"] == "Never mind, show me the fjords."


def test_a_fact_of_another_chat_is_forgotten_in_other_words(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    talk.say("I live in Oslo.", "I earn 50,000 a year.")
    facts = (("Lives in Oslo", 1, "I live in Oslo"), ("Earns 50,000", 2, "I earn 50,000"))
    digested(talk, *(fact(*one, scope="user") for one in facts))
    other = Talk(model_app, model_server, "other", user="ada")
    other.say("Forget about my salary.")
    digested(other, forget=[told(talk)["Earns 50,000"]])
    assert list(told(talk)) == ["Lives in Oslo"]


def test_a_request_that_names_nothing_means_what_was_said_in_its_chat(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    talk.say("I work as a nurse.")
    digested(talk, fact("Works as a nurse", 1, "I work as a nurse", scope="user"))
    talk.say("Forget about my job.")
    digested(talk, forget=list(told(talk).values()))
    assert told(talk) == {}


def test_the_built_in_model_forgets_and_keeps_out(app):
    client = app.test_client()
    say = lambda words: chat(client, words, session_id="s", **ADA)["reply"]  # noqa: E731
    say("I'm allergic to walnuts.")
    say("I live in Oslo.")
    jobs_done(client, "summary", "index")
    assert say("Forget that I'm allergic to walnuts.").startswith('I forget the fact "Allergic to walnuts"')
    jobs_done(client, "summary", "index")
    facts = good(client.get("/api/facts?user_id=ada"))["items"]
    assert [one["text"] for one in facts] == ["Lives in Oslo"]
    summary = good(client.get("/api/sessions/s/summary"))["latest"]["sections"]
    assert "walnuts" not in json.dumps(summary)
    assert good(client.get("/api/sessions/s"))["title"] == "I live in Oslo."
    assert "stays in this chat alone" in say("Please don't remember this: my pin is 4711.")
    jobs_done(client, "summary", "index")
    assert "4711" not in json.dumps(good(client.get("/api/sessions/s/summary"))["latest"]["sections"])
    assert "4711" not in json.dumps(find(client, "pin 4711", **ADA))


REMEMBER = """
Please remember that I work nights
Keep in mind that my son is called Leo
Just remember I was born in Lund
Merk dir bitte, dass ich nachts arbeite
Denk dran, dass mein Sohn Leo heißt
N'oublie pas que je déteste la coriandre
Ten presente que mi hijo se llama Leo
Ricordati che lavoro di notte
请记住我上夜班
Запомни, что я работаю ночью
Запам'ятай, що я працюю вночі
تذكر أن مقاس حذائي كبير
یادت باشد که شماره کفشم بزرگ است
याद रखो कि मैं रात में काम करता हूँ
Ingat bahwa saya bekerja malam
Hãy nhớ rằng tôi làm việc ban đêm
จำไว้นะว่าฉันทำงานกลางคืน
Tenha em mente que sou vegano
Houd er rekening mee dat ik veganist ben
Miej na uwadze, że się przeprowadziłem
"""
NO_REQUEST = """
Do you remember that I told you about my boss?
I never forget that day
remember to water the plants
Remember I told you about the film I was watching
Remember my puppy from earlier
Not sure, I just remember my grandparents taking care of me
Ich merke mir das nie.
Je me souviens que tu l'as dit.
no recuerdo que lo dijeras
我记得我说过
"""


def test_what_follows_a_request_to_remember_is_read():
    lines = REMEMBER.strip().splitlines()
    assert all(requests_to_remember(line) for line in lines)
    assert requests_to_remember(lines[0]) == ["I work nights"] and requests_to_remember(lines[8]) == ["我上夜班"]
    assert [line for line in NO_REQUEST.strip().splitlines() if requests_to_remember(line)] == []


def test_what_the_person_asks_to_remember_is_a_fact_with_any_mini_model(model_app, model_server):
    for number, line in enumerate(REMEMBER.strip().splitlines()):
        talk = Talk(model_app, model_server, f"s{number}", user=f"person-{number}")
        talk.say("Hello.", said("Remember that I am an assistant.", "assistant"), f"{line}. What else?")
        digested(talk)
        (item,) = talk.facts()
        assert (item["quote"], item["scope"]) == (requests_to_remember(line)[0] + ".", "user")


def test_what_the_mini_model_has_taken_is_not_taken_twice(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    talk.say("Please remember that I work nights.")
    digested(talk, fact("Works nights", 1, "I work nights", scope="user"))
    assert talk.texts() == ["Works nights"]
