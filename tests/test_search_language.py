"""What counts as the same word, in each SEARCH_LANGUAGE; and an index of another language counts as none."""

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from app import engine_of
from config import Settings, SettingsError
from memory.languages import analysis_in
from memory.recall import indexing
from search_index.analysis import MAX_TERM, STEMMED
from tests.http import append, chat, find, said
from tests.search_index import folders

ENGLISH = analysis_in("en")


def meets(language: str, asked: str, told: str) -> bool:
    analysis = analysis_in(language)
    return bool(set(analysis.query_terms(asked)) & set(analysis.terms(told, is_indexed=True)))


def test_a_query_in_another_language_is_asked_without_its_function_words():
    german = "Was kostet eigentlich die neue Heizung?"
    for text, left in (
        (german, "kostet Heizung"),
        ("quand est-ce que l'avion part", "avion part"),
        ("Какую вазу разбили?", "вазу разбили"),
        ("¿Qué nos dijo el médico?", "médico"),
    ):
        assert ENGLISH.without_function_words(text).strip(" ?¿").split() == left.split()
    for text in ("What did the doctor say to us?", "die hard", "war and peace in the den", ""):  # "die" may be English
        assert ENGLISH.without_function_words(text) == text
    assert analysis_in("de").without_function_words(german) == german


FOUND = [
    ("en", "running", "she runs"),
    ("en", "When did she go?", "I went there"),
    ("en", "userDashboard", "the user-dashboard"),
    ("en", "type error", "it raised TypeError"),
    ("en", "http server", "class HTTPServer"),
    ("en", "email", "an e-mail"),
    ("en", "bob", "write to bob.smith@example.com"),
    ("en", "example.com", "https://www.example.com/some/path?x=1"),
    ("en", "Caroline", "Caroline’s brother"),
    ("en", "obrien", "Mr O'Brien"),
    ("en", "strasse", "die Straße"),
    ("en", "猫", "我有一只猫"),
    ("en", "Python", "我用Python写代码"),
    ("en", "カメラ", "新しいカメラを買った"),
    ("en", "Will May", "will said in may"),
    ("de", "Wo stehen die Häuser?", "Das Haus ist gelb."),
    ("de", "Übersetzungen", "Er will es übersetzen."),
    ("de", "uebrigens Bücher", "Ich las ein Buch."),
    ("fr", "les chevaux", "Un cheval dort."),
    ("es", "canciones", "Una canción."),
    ("ru", "книги", "Я читаю книгу."),
    ("ro", "caselor", "casele"),
]


def test_what_is_asked_for_finds_what_was_said_and_not_what_only_looks_alike():
    for language, asked, told in FOUND:
        assert meets(language, asked, told), asked
    for asked, told in (("C++", "C is old"), ("v2.1", "v21"), ("14", "3.14"), ("数据", "据数"), ("car", "care")):
        assert not meets("en", asked, told), asked
    for text in ("We walked home in the rain.", "Die hard is a film", "walking dogs", "日本人"):
        indexed = ENGLISH.terms(text, is_indexed=True)
        assert set(indexed) <= {*ENGLISH.terms(text), *text}, "no stems of another language"


def test_stop_words_of_the_language_are_not_searched():
    for language, text, left in [
        ("de", "Was haben wir denn über das gesagt, für dich und während", ["gesagt"]),
        ("fr", "Qu'est-ce que c'est? J'ai été là, n'est pas, qu’il, l'eau", ["leau", "eau"]),
        ("ru", "Что было у них?", []),
        *(("en", text, []) for text in ("What did you do?", "I don't, you're, it’s, can't", "", "  \n", "👍 !?", "_")),
        ("en", "\x00\ud800", []),
    ]:
        assert analysis_in(language).query_terms(text) == left


def test_what_is_not_of_the_language_is_analysed_as_ever():
    """Names of things, numbers, scripts without spaces, and the speaker."""
    for language in STEMMED:
        for asked, told in (
            ("user-dashboard", "see user_dashboard.py"),
            ("v2.1", "released in v2.1."),
            ("10000", "it cost $10,000"),
            ("C++", "I write C++, mostly"),
            ("数据库", "我们用的数据库"),
            ("한국어", "한국어를 배워요"),
            ("ABC", "ＡＢＣ"),
        ):
            assert meets(language, asked, told), asked
        assert not meets(language, "C#", "C++")
        assert set(analysis_in(language).terms("Kuznetsova")) <= set(analysis_in(language).terms("x", "Kuznetsova"))


@given(st.sampled_from(STEMMED), st.text(st.characters(codec=None, categories=None)))
def test_any_text_gives_terms_that_can_be_stored_in_any_language(language, text):
    analysis = analysis_in(language)
    found = analysis.terms(text, text, is_indexed=True)
    assert all(term and not term.isspace() and len(term.encode()) <= 4 * MAX_TERM for term in found)
    assert set(analysis.query_terms(text)) <= set(found)


LETTERS = "abcdefghiklmnoprstuvwyzàâäæçèéêëîïôöøùûüœßñåőűабвгдежийлмностуыьэюя"


@given(st.sampled_from(STEMMED), st.text(LETTERS, min_size=1, max_size=14), st.sampled_from(["", "ement", "ungen"]))
def test_any_word_has_a_stem_and_its_accents_may_be_left_out(language, word, ending):
    analysis = analysis_in(language)
    (term,) = analysis.terms(word + ending) or [""]
    plain = str.maketrans("àâäçèéêëîïôöùûüñåőű", "aaaceeeeiioouuunaou")
    assert analysis.terms((word + ending).translate(plain)) == ([term] if term else [])


def test_every_language_has_a_stemmer_and_the_setting_takes_them_all():
    for code in STEMMED:
        assert Settings.from_env({"SEARCH_LANGUAGE": code.upper()}, None).search_language == code
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"SEARCH_LANGUAGE": "xx"}, None)
    assert all(code in str(caught.value) for code in STEMMED)


@given(st.text())
def test_the_same_text_in_another_unicode_form_is_the_same(text):
    composed = unicodedata.normalize("NFC", text)
    assert ENGLISH.terms(composed) == ENGLISH.terms(unicodedata.normalize("NFD", composed))


@given(st.lists(st.text(st.characters(categories=["Ll"], max_codepoint=0x24F), min_size=1), max_size=8))
def test_case_of_whole_words_does_not_matter(words):
    lower = " ".join(words).casefold()
    assert ENGLISH.terms(lower.upper()) == ENGLISH.terms(lower.upper().lower())


# -- over HTTP


def contents(client: FlaskClient, q: str) -> list[str]:
    return [result["content"] for result in find(client, q, user_id="ida")]


GERMAN = ["Die Häuser am Hafen sind gelb.", "Unser Hund bellt nachts."]


def test_search_and_recall_in_german(make_app):
    client = make_app(search_language="de").test_client()
    for number, text in enumerate([*GERMAN, *COMPOUNDS]):
        append(client, f"s{number}", [said(text)], user_id="ida")
    for _ in range(2):  # waiting, then indexed
        assert contents(client, "Haus")[0] == GERMAN[0]
        assert contents(client, "Hunde")[0] == GERMAN[1]
        answer = chat(client, "Wie war das mit dem Haus?", user_id="ida", temporary=True)
        assert [m["content"] for e in answer["memory"]["excerpts"] for m in e["messages"]] == GERMAN[:1]
        nothing = chat(client, "und wie war das nun?", user_id="ida", temporary=True)["memory"]
        assert (nothing["excerpts"], nothing["recall"]["reason"]) == ([], "has no words to look for")
        parts_of_compounds_are_found(client)
        engine_of(client.application).job_queue.run_due(["index"])


OTHERS = [
    ("Die Häuser am Hafen sind gelb.", "Welche Farbe hat das Haus?", "Häuser"),
    ("Les chevaux dorment dans le pré.", "Où est-ce que le cheval dort ?", "chevaux"),
    ("Hemos comprado los muebles del salón.", "¿Dónde está el mueble?", "muebles"),
    ("Abbiamo preso due gattini dal gattile.", "Come si chiama il gattino?", "gattini"),
    ("Соседи сверлят стену.", "Что делает сосед?", "Соседи"),
]


COMPOUNDS = ["Mein Zahnarzttermin ist am 12. um halb drei.", "Wir haben eine neue Küche bei den Nachbarn gesehen."]


def parts_of_compounds_are_found(client: FlaskClient) -> None:
    assert contents(client, "Wann ist der Termin?")[0] == COMPOUNDS[0]
    assert contents(client, "Wann war das mit dem Zahnarzt?")[0] == COMPOUNDS[0]
    assert contents(client, "Wo ist die Einbauküche?")[0] == COMPOUNDS[1]


CHINESE = [
    *(
        "报名了厦门马拉松，第一次跑全程。",
        "房东周六上午十点过来修水管。",
        "去年夏天去了臺灣環島。",
        "今天下雨，心情一般。",
    ),
    *("最近在学做蛋糕，不过总是烤焦。", "周末和同事打羽毛球，大家都很开心。", "这本小说的主角让我很感动。"),
    *("公司的项目要加班，感觉时间不够用。", "早上喝了一杯咖啡，然后去公园散步。", "下个月想换一份工作。"),
]


def test_a_chinese_question_recalls_what_has_its_content_words_in_either_script(client):
    append(client, "s", [said(text) for text in CHINESE], user_id="ida")
    for _ in range(2):  # waiting, then indexed
        for question, answer in (
            ("我要参加的马拉松在哪个城市", CHINESE[0]),
            ("我什么时候去的台湾？", CHINESE[2]),
            ("孙子兵法的核心思想是什么？", None),
            ("给我列出五个提高工作效率的方法。", None),
        ):
            excerpts = chat(client, question, user_id="ida", temporary=True)["memory"]["excerpts"]
            shown = [message["content"] for excerpt in excerpts for message in excerpt["messages"]]
            assert answer in shown if answer else not shown
            if answer:
                (found, *_) = find(client, question, user_id="ida")
                assert found["content"] == answer and found["highlights"]
        engine_of(client.application).job_queue.run_due(["index"])


def test_words_of_another_language_are_found_in_their_other_forms(client):
    texts = [text for text, _, _ in OTHERS]
    append(client, "s", [said(text) for text in [*texts, "We walked home.", "Firmato!", *COMPOUNDS]], user_id="ida")
    for _ in range(2):  # waiting, then indexed
        for text, question, word in OTHERS:
            (found, *_) = find(client, question, user_id="ida")
            assert (found["content"], found["highlights"]) == (text, [word])
            assert contents(client, word)[0] == text, "a word by itself is in no language"
            answer = chat(client, question, user_id="ida", temporary=True)["memory"]
            assert text in [message["content"] for excerpt in answer["excerpts"] for message in excerpt["messages"]]
        assert contents(client, "Quando è stato firmato il contratto?")[0] == "Firmato!", "as written"
        assert contents(client, '"Häuser am Hafen"') == texts[:1]
        parts_of_compounds_are_found(client)
        engine_of(client.application).job_queue.run_due(["index"])


# What a person told, and asks in other forms of its words; a greeting, and a request that anybody could make.
WORLD = {
    "ar": (
        *("اشتريت دراجة زرقاء لابنتي من السوق.", "من أين اشتريت الدرّاجة؟"),
        *("مرحبا، كيف حالك؟", "اكتب قصيدة عن البحر"),
    ),
    "el": (
        *("Αγόρασα ένα μπλε ποδήλατο.", "ΠΟΥ ΕΙΝΑΙ ΤΟ ΠΟΔΗΛΑΤΟ ΜΟΥ;"),
        *("Καλημέρα!", "Γράψε ένα ποίημα"),
    ),
    "fa": (
        *("دیروز یک دوچرخه‌ی آبی خریدم.", "دوچرخه من چه رنگی است؟"),
        *("سلام، حالت چطوره؟", "یک شعر درباره دریا بنویس"),
    ),
    "he": (
        *("קניתי אופניים כחולים לבת שלי.", "איפה האופניים?"),
        *("בוקר טוב!", "כתוב שיר על הים"),
    ),
    "hi": (
        *("मैंने बेटी के लिए नीली साइकिलें बाज़ार से खरीदीं।", "साइकिल किस बाजार से ली?"),
        *("नमस्ते, कैसे हो?", "समुद्र पर एक कविता लिखो"),
    ),
    "id": (
        *("Saya membeli sepeda biru untuk anak perempuan.", "Apa warna sepeda yang saya beli?"),
        *("Apa kabar?", "Tulis puisi tentang laut"),
    ),
    "ja": (
        *("娘に青い自転車を買った。", "自転車は何色でしたっけ？"),
        *("こんにちは、元気ですか？", "海についての詩を書いて"),
    ),
    "ko": (
        *("딸한테 파란 자전거를 사 줬어.", "자전거는 무슨 색이지?"),
        *("안녕, 잘 지내?", "바다에 대한 시를 써 줘"),
    ),
    "pl": (
        *("Kupiłem córce niebieski rower.", "Jakiego koloru są rowery córki?"),
        *("Cześć, co słychać?", "Napisz wiersz o morzu"),
    ),
    "ru": (
        *("Я купил племяннику зелёный самокат.", "Какого цвета самокат племянника, зеленого?"),
        *("Спасибо!", "Напиши стихотворение о море"),
    ),
    "th": (
        *("ซื้อจักรยานสีฟ้าให้ลูกสาว", "จักรยานของลูกสาวสีอะไร"),
        *("สวัสดี สบายดีไหม", "แต่งกลอนเกี่ยวกับทะเล"),
    ),
    "tr": (
        *("Kızıma mavi bir bisiklet aldım.", "Kızımın bisikleti ne renk?"),
        *("Merhaba, nasılsın?", "Deniz hakkında bir şiir yaz"),
    ),
    "uk": (
        *("Я купив доньці синій велосипед.", "Якого кольору велосипеди доньки?"),
        *("Привіт, як справи?", "Напиши вірш про море"),
    ),
    "vi": (
        *("Tôi mua xe đạp màu xanh cho con gái.", "Xe dap cua con gai toi mau gi?"),
        *("Xin chào, bạn khỏe không?", "Viết một bài thơ về biển"),
    ),
}


def test_what_was_told_in_any_language_is_recalled_and_nothing_for_greetings_and_requests(make_app):
    client = make_app().test_client()
    for code, (told, *_) in WORLD.items():
        append(client, code, [said(told)], user_id="ida")
        append(client, f"{code}-2", [said("I had soup for lunch.")], user_id="ida")
    for _ in range(2):  # waiting, then indexed
        for told, question, greeting, request in WORLD.values():
            assert contents(client, question)[0] == told
            for message, shown in ((question, {told}), (greeting, set()), (request, set())):
                excerpts = chat(client, message, user_id="ida", temporary=True)["memory"]["excerpts"]
                assert {one["content"] for excerpt in excerpts for one in excerpt["messages"]} == shown, message
        engine_of(client.application).job_queue.run_due(["index"])


# A reference to the past that names what was told, and a question that names yesterday alone.
PAST = {
    "ar": ("ماذا قلت لك عن الدراجة؟", "ماذا كتبت لك أمس؟"),
    "el": ("Τι σου είχα πει για το ποδήλατο;", "Τι έγραψα χθες;"),
    "fa": ("درباره دوچرخه چه گفته بودم؟", "دیروز چی نوشتم؟"),
    "he": ("מה סיפרתי לך על אופניים?", "מה כתבתי אתמול?"),
    "hi": ("मैंने साइकिल के बारे में क्या बताया था?", None),  # कल is yesterday and tomorrow
    "id": ("Apa yang pernah saya ceritakan tentang sepeda?", "Apa yang saya tulis kemarin?"),
    "ko": ("내가 자전거에 대해서 뭐라고 했지?", "내가 어제 뭐라고 썼지?"),
    "th": ("ฉันเคยเล่าเรื่องจักรยานว่ายังไง", "เมื่อวานฉันเขียนอะไร"),
    "tr": ("Bisiklet hakkında ne anlatmıştım?", "Dün ne yazmıştım?"),
    "uk": ("Що я розповідав про велосипед?", "Що я писав учора?"),
    "vi": ("Tôi đã kể gì về xe đạp?", "Hôm qua tôi đã viết gì?"),
}


def test_references_to_the_past_and_yesterday_are_read(client):
    now = datetime.now(UTC)
    for code, questions in PAST.items():
        soup = said("Soup for lunch.", created_at=(now - timedelta(days=9)).isoformat())
        append(client, f"{code}-a", [soup], user_id=code)
        told = said(WORLD[code][0], created_at=(now - timedelta(days=1)).isoformat())
        append(client, f"{code}-b", [told], user_id=code)
        for question, reason in zip(questions, ("refers to the past", "speaks of"), strict=True):
            if question is not None:
                memory = chat(client, question, user_id=code, temporary=True)["memory"]
                assert reason in memory["recall"]["reason"]
                shown = [one["content"] for excerpt in memory["excerpts"] for one in excerpt["messages"]]
                assert shown == [WORLD[code][0]]


SAME = [
    *(("عُنْوَانِي", "عنواني"), ("أحمد", "احمد"), ("كتــاب", "كتاب"), ("۴۳", "43"), ("٤٣", "43"), ("كتابي", "کتابی")),
    *(("ёлка", "елка"), ("за́мок", "замок"), ("Ελλάδα", "ΕΛΛΑΔΑ"), ("Σοφός", "σοφος"), ("İzmir", "izmir")),
    *(("ağaç", "agac"), ("Nguyễn Huệ", "nguyen hue"), ("ＷＩＦＩ", "wifi"), ("ｶﾞｽ", "ガス"), ("שָׁלוֹם", "שלום")),
    *(("बाज़ार", "बाजार"), ("माँ", "मां"), ("४३", "43"), ("\u202bשלום\u202c", "שלום")),
]


def test_what_people_write_with_or_without_marks_is_the_same_word():
    for text, other in SAME:
        for language in ("en", "ar"):
            assert analysis_in(language).terms(text) == analysis_in(language).terms(other)


def test_an_index_of_another_language_counts_as_none_and_is_made_again(make_app):
    english = make_app()
    append(english.test_client(), "s", [said(text) for text in GERMAN], user_id="ida")
    engine_of(english).job_queue.run_due()
    (before,) = indexing.verify(engine_of(english))
    assert (before.indexed, before.unindexed) == (2, 0)

    german = make_app(search_language="de")
    (other,) = indexing.verify(engine_of(german))
    assert (other.indexed, other.unindexed, other.consistent) == (0, 2, True)
    assert contents(german.test_client(), "Haus")[0] == GERMAN[0]  # searched as what waits to be indexed
    engine_of(german).job_queue.run_due()  # which the search has asked for
    (after,) = indexing.verify(engine_of(german))
    assert (after.indexed, after.unindexed, after.consistent) == (2, 0, True)
    assert contents(german.test_client(), "Haus")[0] == GERMAN[0]

    again = make_app(search_language="de")  # a restart keeps it
    assert [one.indexed for one in indexing.verify(engine_of(again))] == [2]
    assert len(folders(engine_of(again).settings.index_dir)) == 1, "the English one is gone from the disk"
