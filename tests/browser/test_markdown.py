"""Replies as Markdown: code with its language and colours, task lists, footnotes within their message, and tables."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import box, fits, messages, talk
from tests.browser.windows import PHONE, watch_of

CODE = 'def area(radius):  # of a circle\n    return 3.14 * radius ** 2\n\nprint("area", area(2))'
DIFF = "-old line\n+new line"
FORMATTED = f"""Here it is[^why], and again[^why].

```python
{CODE}
```

```diff
{DIFF}
```

```nosuchlanguage onload=alert(1)
just <b>words</b>
```

- [x] bought tea
- [ ] bought **bread**
- [link](https://example.com) is no task

| left | middle | right |
|:-----|:------:|------:|
| a    | b      | c     |

A pattern ^[a-z]+$ is no footnote.

[^why]: Because of `this`.
"""
IN_MANY_LANGUAGES = """
```python
class A(B):
    '''Words.'''
    x: int = 1 if True else None
    @property
    def f(self): return rf'{x}'
```
```ts
type A = { b: string };
const c = /x+/g.test(`a${1}`) ?? new Map();
```
```html
<p class="x">y</p>
```
```yaml
a: 1 # b
```
```css
.a > b { color: #fff }
```
"""


def asked(page: Page, *names: str) -> list[str]:
    """Which of these vendored files the page has asked for."""
    return [name for name in names if any(url.endswith(f"/vendor/{name}") for url in watch_of(page).requests)]


def block(message: Locator, number: int) -> Locator:
    return message.locator(".code").nth(number)


def test_code_has_its_language_colours_and_a_button_that_copies_it(page, live):
    talk(live.client, "plain", "Hello", "No code here. It costs $5 to $9, or US$7.")
    talk(live.client, "sums", "How?", "So $E = mc^2$ and $5, then\n\n$$\n\\frac{a}{b}\n$$\n\nand `$x$` <b>.")
    talk(live.client, "coded", f"See:\n```python\n{CODE}\n```\nWhat is wrong?", FORMATTED)
    talk(live.client, "looks", "Show me", '```dialog\nx\n```\n\n~~~notice" error\ny\n~~~\n\n```[^1] x=1\nz\n```')
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/#/plain")
    expect(messages(page)).to_have_count(2)
    page.wait_for_load_state("networkidle")
    assert asked(page, "highlight.mjs", "katex.mjs") == []
    expect(messages(page).last).to_contain_text("It costs $5 to $9, or US$7.")
    page.goto("/#/sums")
    formulas = messages(page).last.locator("math")
    expect(formulas).to_have_count(2)
    expect(formulas.last.locator("mfrac")).to_be_visible()
    expect(messages(page).last).to_contain_text("and $5, then")
    expect(messages(page).last.locator("code")).to_have_text("$x$")
    page.goto("/#/coded")
    question, reply = messages(page).first, messages(page).last
    for message in (question, reply):
        code = block(message, 0)
        expect(code).to_contain_text("python")
        expect(code.locator(".hljs-keyword").first).to_have_text("def")
        code.get_by_role("button", name="Copy").click()
        expect(code.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == CODE
    expect(question).to_contain_text("What is wrong?")
    expect(block(reply, 1).locator(".hljs-addition")).to_have_text("+new line")
    expect(block(reply, 2)).to_contain_text("nosuchlanguage")
    expect(block(reply, 2).locator("code")).to_have_text("just <b>words</b>")
    assert asked(page, "highlight.mjs") == ["highlight.mjs"]
    page.goto("/#/looks")  # classes come from the language alone, and only as such
    expect(messages(page).last.locator("code")).to_have_text(["x", "y", "z"])
    assert messages(page).last.locator(".dialog, .notice, .error, .language-dialog").count() == 0


def test_task_lists_aligned_tables_and_footnotes_that_lead_to_those_of_their_own_message(page, live):
    talk(
        live.client,
        "lists",
        "Show me",
        FORMATTED,
        "Which code?",
        "4711.",
        "In a list?",
        "1. one\n2.\n   two\n3.\n\n-",
        "مرحبا!",
        "- שלום\n\nHello\n\n> שלום",
    )
    page.goto("/#/lists")
    reply, number, mixed, arabic, hebrew = (messages(page).nth(at) for at in (1, 3, 5, 6, 7))
    expect(number.get_by_role("paragraph")).to_have_text("4711.")  # and no empty list
    expect(mixed.get_by_role("listitem")).to_have_text(["one", "two", ""])
    expect(mixed.get_by_role("paragraph").last).to_have_text("-")
    for words in (arabic.locator(".body"), hebrew.get_by_role("list")):
        expect(words).to_have_css("direction", "rtl")
    expect(hebrew.get_by_role("paragraph").first).to_have_css("direction", "ltr")
    expect(hebrew.get_by_role("blockquote")).to_have_css("border-right-width", "3px")
    expect(reply.get_by_role("checkbox")).to_have_count(2)
    expect(reply.get_by_role("checkbox", name="Done", exact=True)).to_be_checked()
    expect(reply.get_by_role("checkbox", name="Not done")).not_to_be_checked()
    expect(reply.get_by_role("listitem").filter(has_text="bought bread")).not_to_contain_text("[")
    for words, align in (("a", "left"), ("b", "center"), ("c", "right")):
        expect(reply.get_by_role("cell", name=words, exact=True)).to_have_css("text-align", align)
    assert reply.locator("[style]").count() == 0
    hostile = "One[^1]. [Elsewhere](#/garden) [box](#message-box)\n\n[^1]: Note of the second."
    talk(live.client, "notes", "First", FORMATTED, "Second", hostile)
    page.goto("/#/notes")
    first, second = messages(page).nth(1), messages(page).nth(3)
    second.get_by_role("button", name="Footnote 1", exact=True).click()
    expect(second.get_by_role("listitem").filter(has_text="Note of the second")).to_be_focused()
    second.get_by_role("button", name="Back from footnote 1").click()
    expect(second.get_by_role("button", name="Footnote 1", exact=True)).to_be_focused()
    again = first.get_by_role("button", name="Footnote 1", exact=True).nth(1)
    first.get_by_role("button", name="Back from footnote 1").nth(1).click()
    expect(again).to_be_focused()
    expect(first).to_contain_text("A pattern ^[a-z]+$ is no footnote.")
    assert page.locator("#messages .body :is([id], [name], a[href^='#'])").count() == 0
    assert page.url.endswith("#/notes")
    expect(box(page)).to_be_visible()


@pytest.mark.parametrize("page", [PHONE.at_night], indirect=True, ids=str)
def test_formatted_replies_fit_and_are_accessible(page, live):
    talk(live.client, "all", IN_MANY_LANGUAGES, f"{FORMATTED}\n\n{IN_MANY_LANGUAGES}")
    page.goto("/#/all")
    expect(messages(page).last.locator(".hljs-comment").first).to_be_attached()
    expect(messages(page).first.locator(".hljs-keyword").first).to_be_attached()
    fits(page)


def test_blocks_of_code_that_do_not_end_hold_nothing_up(page, live):
    ids = talk(
        live.client, "long", "```x\n" * 19_000 + "The end.", "Noted.", "Before\n```js\nlet a;\n```\n```\n```\nAfter"
    )
    page.goto("/#/long")
    expect(page.locator(f'[data-id="{ids[0]}"]')).to_contain_text("The end.")
    last = page.locator(f'[data-id="{ids[2]}"] .body')
    expect(last.locator("pre")).to_have_text(["let a;", ""])
    expect(last).to_contain_text(re.compile("^Before.*After$", re.DOTALL))
