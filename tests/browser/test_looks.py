"""On every screen, in both looks and both languages: nothing runs out of the window, and axe-core finds nothing."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import ME, box, deed, messages, misfits, talk
from tests.browser.windows import PHONE, USUAL, Screen, watch_of
from tests.http import good
from tests.knowledge import digest_of, fact
from tests.model_server import ModelServer
from web import TEXTS

LONG = "A" * 300 + " Wort " * 40
REPLY = f"""### Überschrift

Text mit `code` und **Gewicht**.

# Noch eine

| a | b |
|---|---|
| 1 | {"breit " * 40} |

```
{"x" * 400}
```"""
WHY = {name: TEXTS[name]["chat"]["message"]["why"] for name in TEXTS}
SCREENS = (PHONE.in_german, Screen(1000, 760).at_night)


@pytest.fixture
def garden(live, model_server):
    """A chat with a long message, a summary and facts; its words are German."""
    digest = digest_of(
        fact("Rosen trinken viel", 1, "Die Rosen brauchen Wasser"), topic="Garten", constraints=[LONG[:390]]
    )
    model_server.mini.queue(digest)
    talk(live.client, "garten", f"Die Rosen brauchen Wasser. {LONG}", REPLY)
    live.settle()
    for number, pinned in enumerate((True, False)):
        body = {"user_id": ME, "text": f"Fakt {number}. {LONG}"[:400], "pinned": pinned, "importance": number + 2}
        assert live.client.post("/api/facts", json=body).status_code == 201
    return live


def states(page: Page, model_server: ModelServer) -> Iterator[str]:
    """Walk through the page and stop in each of its states.  Finds its way by places, as names differ by language."""

    def open_panel(name: str, inside: str) -> None:
        if not page.locator(inside).is_visible():
            page.locator(f"[data-open-panel={name}]").click()

    def press(place: str) -> None:
        page.locator(place).first.click()

    page.goto("/")
    expect(page.locator("section.empty")).to_be_visible()
    yield "a new chat"
    open_panel("sessions", "#temporary-chat")
    press("#temporary-chat")
    expect(page.locator(".conversation:has(.composer.temporary) section.empty")).to_be_visible()
    yield "a temporary chat"
    page.goto("/#/garten")
    expect(page.locator("article")).to_have_count(2)
    for count, words in ((4, "Und heute?"), (6, "Und morgen?")):
        model_server.main.queue(REPLY)
        page.locator("#message-box").fill(words)
        press("#send")
        expect(page.locator("article .deeds")).to_have_count(count)
    deed(page.locator("article").last, WHY[page.evaluate("document.documentElement.lang")])
    expect(page.locator(".why").last).to_be_visible()
    yield "a reply, and why it is so"
    open_panel("memory", "#memory")
    expect(page.locator("#memory .fact")).to_have_count(3)
    page.locator("#memory .fact-text", has_text="Rosen").click()
    expect(page.locator("#memory .quote")).to_be_visible()
    press("#memory .fact-text")
    press("#memory .fact-foot button")
    expect(page.locator("#memory .fact-history li").first).to_be_visible()
    yield "the memory panel, and how a fact has changed"
    page.locator("#memory .fact").first.press("e")
    expect(page.locator("#memory .fact textarea")).to_be_focused()
    yield "a fact that is edited"
    page.keyboard.press("Escape")
    press("#memory [data-tab=summary]")
    expect(page.locator("#memory .item").first).to_be_visible()
    press("#memory .memory-part:not([hidden]) .row.top button")
    expect(page.locator(".summary-form")).to_be_visible()
    yield "a summary that is edited"
    page.keyboard.press("Escape")
    page.locator("#memory .memory-part:not([hidden]) .row.top button").nth(1).click()
    expect(page.locator("dialog .chosen h4").first).to_be_visible()
    yield "the versions of the summary"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    open_panel("sessions", "#open-manage")
    press("#open-manage")
    expect(page.locator("dialog .fact:visible")).to_have_count(3)
    yield "what Recap knows, in a minute"
    press("dialog [data-tab=facts]")
    expect(page.locator("dialog .fact:visible")).to_have_count(3)
    page.locator("dialog .fact input:visible").first.check()
    yield "all facts"
    press("dialog .manage-tools button.danger")
    expect(page.locator("dialog")).to_have_count(2)
    yield "whether facts are forgotten"
    page.keyboard.press("Escape")
    press("dialog [data-tab=data]")
    page.locator("dialog .person button.danger").click()
    expect(page.locator("dialog")).to_have_count(2)
    yield "whether everything is erased"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    open_panel("sessions", "#open-settings")
    press("#open-settings")
    for name in ("chat", "look", "server", "models"):
        yield "the settings"
        press(f"dialog [data-tab={name}]")
    prompts = page.locator("dialog .part", has=page.locator(".prompt-preview"))
    expect(prompts.locator("select")).to_be_enabled()
    prompts.locator("summary").click()
    yield "the settings"
    prompts.locator("button").click()
    expect(page.locator("dialog textarea.mono")).to_be_enabled()
    model_server.mini.queue(digest_of(topic="Ein Garten", requirements=[LONG[:390]]))
    page.locator("dialog textarea.mono").fill("{{ max_words }} " + LONG)
    page.locator("dialog [aria-describedby=try-note]").click()
    expect(page.locator("dialog .stack > h4").first).to_be_visible()
    yield "a prompt that is tried"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    open_panel("sessions", "#search")
    page.locator("#search").fill("Rosen")
    expect(page.locator(".hit").first).to_be_visible()
    yield "what a search found"
    page.locator("#search").fill("")
    press("#archived-chats")
    expect(page.locator("#archived-chats")).to_have_attribute("aria-pressed", "true")
    yield "the archived chats"


@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_every_state_fits_is_accessible_answers_to_a_pointer_and_speaks_one_language(
    browse, garden, model_server, screen
):
    page = browse(garden, screen)
    found: dict[str, str] = {}  # the state in which each problem was seen first
    unseen: dict[str, set[str]] = {}  # by look: rules for what is under a pointer, which have shown at no place yet
    for state in states(page, model_server):
        problems = misfits(page) + odd_sizes(page)
        problems += page.locator('[class~="undefined"], [class~="false"], [class~="null"]').all_inner_texts()
        if screen.touch:
            problems += small_targets(page)
        for look in ("light", "dark") if not screen.touch else ():
            page.emulate_media(color_scheme=look)
            problems += answers(page, unseen.setdefault(look, set(page.evaluate(HOVERED))))
        if screen.locale == "de-DE":
            problems += english(page)
        found = dict.fromkeys(problems, state) | found
    assert not found, "\n".join(f"{state}: {problem}" for problem, state in found.items())
    assert not any(unseen.values()), f"nothing was seen under the pointer of: {unseen}"


# Rules that say what a pointer does; and where one might try each, as [rule, x, y], with the middle on top.
HOVERED = """() => {
    const flat = (rules) => [...rules].flatMap((rule) => rule.selectorText ? [rule.selectorText]
        : rule.cssRules && (!rule.media || matchMedia(rule.media.mediaText).matches) ? flat(rule.cssRules) : []);
    return [...document.styleSheets].flatMap((sheet) => flat(sheet.cssRules)).filter((rule) => rule.includes(":hover"));
}"""
PLACES = """(rules) => rules.flatMap((rule) => {
    const at = rule.includes(":not(:hover") ? "article, .session, .fact, .item" : rule.replaceAll(":hover", ":not(_)");
    return [...document.querySelectorAll(at)].filter((one) => one.checkVisibility()).map((one) => {
        const { left, top, width, height } = one.getBoundingClientRect();
        return [one, rule, left + width / 2, top + height / 2];
    }).filter(([one, rule, x, y]) => one.contains(document.elementFromPoint(x, y))).slice(0, 4)
        .map(([one, ...place]) => place);
})"""
# What is seen at a place: the look of what is there, and where everything stands.
LOOK = """([x, y]) => {
    const path = document.elementsFromPoint(x, y);
    const near = [...path, ...(path[0]?.closest("article, li") ?? path[0])?.querySelectorAll("*") ?? []];
    const names = ["color", "backgroundColor", "borderColor", "opacity", "textDecoration", "boxShadow"];
    const looks = near.map((one) => getComputedStyle(one)).map((style) => names.map((name) => style[name]).join());
    const all = [...document.querySelectorAll("button, input, select, textarea, p, li, h2, h3, article")];
    const rects = all.map((one) => one.getBoundingClientRect());
    return [looks.join("|"), rects.map(({ x, y, right, bottom }) => [x, y, right, bottom].map(Math.round)).join("|")];
}"""


def answers(page: Page, unseen: set[str]) -> list[str]:
    """Point at what has one of the rules `unseen`, and take away those that show; what moves under the pointer."""
    moved: list[str] = []
    for rule, x, y in page.evaluate(PLACES, sorted(unseen)):
        page.mouse.move(2, 2)
        before = page.evaluate(LOOK, [x, y])
        page.mouse.move(x, y)
        after = page.evaluate(LOOK, [x, y])
        if before[0] != after[0]:
            unseen.discard(rule)
        page.mouse.move(2, 2)
        if before[1] != after[1] and before[1] == page.evaluate(LOOK, [x, y])[1]:  # else something was loaded
            moved.append(f"moves under the pointer: {rule} at {x}, {y}")
    return moved


CAPTIONS = "time, .when, .badge, .day, .keys-hint, .token-plot, .parts, .deeds, .sessions-list h3, sup"
SIZES = {12, 13, 15, 16, 20}


def odd_sizes(page: Page) -> list[str]:
    """Text of another size than the page's five, or of the smallest that is no caption."""
    sizes: list[tuple[float, bool, str]] = page.evaluate(
        """(captions) => [...document.querySelectorAll("body *:not(script, option, svg *)")]
            .filter((one) => one.checkVisibility())
            .filter((one) => [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()))
            .map((one) => [one, parseFloat(getComputedStyle(one).fontSize)])
            .map(([one, size]) => [size, Boolean(one.closest(captions)), one.outerHTML.slice(0, 120)])""",
        CAPTIONS,
    )
    return [
        f"{size} px: {html}"
        for size, is_caption, html in sizes
        if size not in SIZES or (size < min(SIZES - {12}) and not is_caption)
    ]


def small_targets(page: Page) -> list[str]:
    """What a finger would miss: controls below 44 pixels.  Links within a text are exempt."""
    small: list[str] = page.evaluate("""() =>
        [...document.querySelectorAll("button, input, select, textarea, summary")]
            .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest("[inert]"))
            .map((one) => one.closest("label") ?? one)
            .filter((one) => Math.min(one.offsetWidth, one.offsetHeight) < 44)
            .map((one) => `too small: ${one.offsetWidth}x${one.offsetHeight} ${one.outerHTML.slice(0, 160)}`)""")
    return small


ENGLISH = re.compile(r"\b(the|and|of|this|is|are|it|its|you|your|no|yet|with|for|from|to|not)\b", re.I)
# What is seen, heard and hinted at.  Prompts are for models, and what is marked as English for whoever runs the server.
SEEN = """() => [...document.querySelectorAll("body *:not(script, textarea, .prompt-text, [lang=en])")].flatMap(one => [
    ...[...one.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data.trim()),
    ...["aria-label", "title", "placeholder", "alt"].map((name) => one.getAttribute(name) ?? ""),
])"""


def english(page: Page) -> list[str]:
    """Texts of the page that are those of the English catalogue, or have an English function word in them."""
    only_english = set(texts_of(TEXTS["en"])) - set(texts_of(TEXTS["de"]))
    return [
        f"English: {words}"
        for words in dict.fromkeys(page.evaluate(SEEN))
        if words in only_english or ENGLISH.search(re.sub(r"{%.*?%}", "", words))
    ]


def texts_of(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values():
            yield from texts_of(part)


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_on_a_phone_the_sides_slide_in_one_at_a_time_and_enter_begins_a_line(page, live):
    talk(live.client, "garden", "The roses need water", "Noted.")
    page.goto("/")
    page.get_by_role("button", name="Open chats").click()
    chats = page.get_by_role("navigation", name="Chats")
    chats.get_by_role("button", name=re.compile("^The roses")).click()
    expect(chats).to_be_hidden()
    expect(messages(page)).to_have_count(2)
    page.get_by_role("button", name="Memory", exact=True).click()
    memory = page.get_by_role("complementary", name="Memory")
    expect(memory).to_be_visible()
    page.keyboard.press("Escape")
    expect(memory).to_be_hidden()
    expect(page.get_by_role("button", name="Memory", exact=True)).to_be_focused()
    box(page).fill("First line")
    box(page).press("End")
    box(page).press("Enter")
    box(page).press_sequentially("second line")
    expect(box(page)).to_have_value("First line\nsecond line")
    expect(messages(page)).to_have_count(2)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(messages(page)).to_have_count(4)


@pytest.mark.parametrize("screen", [PHONE.in_german], ids=str)
def test_on_a_phone_buttons_have_room_for_their_words_and_for_a_finger(serve, browse, screen):
    page = browse(serve(builtin=True), screen)  # with the notice above
    page.goto("/")
    expect(page.locator("#notice")).to_be_visible()
    page.locator("[data-open-panel=sessions]").click()
    expect(page.locator("#open-settings")).to_be_in_viewport(ratio=1)
    narrow = (
        "[...document.querySelectorAll('button')].filter(one => one.scrollWidth > one.clientWidth).map(one => one.id)"
    )
    assert page.evaluate(narrow) == []
    page.keyboard.press("Escape")
    page.locator("#message-box").fill("Ich arbeite als Hebamme.")
    page.locator("#send").click()
    expect(page.get_by_role("button", name="Warum diese Antwort")).to_be_visible()
    assert page.evaluate(narrow) == []
    page.get_by_role("button", name="Gedächtnis", exact=True).click()
    page.locator(".fact-text").click()
    own = """[...document.querySelectorAll('.fact .row-actions button')].map((one) => {
        const { left, width, top, bottom } = one.getBoundingClientRect(), x = left + width / 2;
        return [top + 2, bottom - 2].every((y) => one.contains(document.elementFromPoint(x, y)));
    })"""
    assert page.evaluate(own) == [True, True, True]  # nothing else takes a part of their taps


@pytest.mark.parametrize("page", [USUAL.in_german], indirect=True, ids=str)
def test_on_the_german_page_reasons_speakers_and_refusals_are_german(page, live, model_server):
    talk(live.client, "trip", "The ferry to Saaremaa leaves at 7:40", "Noted.")
    page.goto("/#/trip")
    expect(page.get_by_role("article", name=re.compile("^Du, "))).to_have_count(1)
    for words, reason in (
        ("Hello!", "deine Nachricht ist Plauderei"),
        ("Which ferry to Saaremaa?", "Stelle herangezogen"),
    ):
        page.get_by_role("button", name="Neuer Chat").click()
        model_server.main.queue("Ja.")
        german = page.get_by_role("textbox", name="Deine Nachricht")
        german.fill(words)
        german.press("Enter")
        page.get_by_role("button", name=re.compile("^Warum diese Antwort")).click()
        expect(page.get_by_role("region", name="Warum diese Antwort")).to_contain_text(reason)
    german.fill("x" * 100_001)
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("1 Zeichen länger als die 100.000")
    made = good(live.client.post("/api/facts", json={"user_id": ME, "text": "Ada trinkt Tee."}))
    page.reload()
    fact = page.locator("#memory .fact")
    expect(fact).to_have_count(1)
    good(live.client.delete(f"/api/facts/{made['id']}", query_string={"user_id": ME}))
    watch_of(page).expect("404")
    fact.press("p")
    expect(page.locator("#memory").get_by_role("alert")).to_contain_text("Diesen Fakt gibt es nicht mehr.")
