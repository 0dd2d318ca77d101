"""Whatever text says, the page shows it and does nothing else: no script, no request elsewhere, no broken frame.

The window itself watches (`browser.windows`): an alert, a console error or a request to another origin fails a test.
"""

from playwright.sync_api import Page, expect

from tests.browser.page import ME, messages, send, talk
from tests.model_server import Text

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>press</a>",
    "[press](javascript:alert(1))",
    "[press](JaVaScRiPt&#58;alert(1))",
    "[press](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "![a picture](http://example.com/spy.png?what=secrets)",
    '![x](x"onerror="alert(1))',
    "<style>@import 'http://example.com/a.css'; body{display:none}</style>",
    "<meta http-equiv=refresh content='0;url=http://example.com/'>",
    "<form action=http://example.com/><input name=a autofocus onfocus=alert(1)></form>",
    "<details open ontoggle=alert(1)>x</details>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<div style='position:fixed;inset:0;background:url(http://example.com/a.png)'>over everything</div>",
    "</textarea></article></main><script>alert(1)</script>",
    "```html\n</code></pre><img src=x onerror=alert(1)>\n```",
    "| a | b |\n|---|---|\n| <img src=x onerror=alert(1)> | [x](javascript:alert(1)) |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= alert(1) %>",
    "\u202e<script>alert(1)</script>\u2066\u200b",
    "<a id=messages name=fetch href=#>x</a><form id=composer><input id=send></form>",
)


def test_no_reply_is_more_than_words(page, model_server):
    """One reply with all of them, streamed, then read again as a stored one."""
    link = "[the manual](https://example.com/manual)"
    model_server.main.queue(Text("\n\n".join(ATTACKS) + f"\n\n{link}\n\nThe end."))
    page.goto("/")
    send(page, "Show me everything you have")
    expect(messages(page).last).to_contain_text("The end.")
    page.reload()
    expect(messages(page).last).to_contain_text("The end.")
    inert(page)
    manual = messages(page).last.get_by_role("link", name="the manual")  # whose page never gets at this one
    expect(manual).to_have_attribute("rel", "noopener noreferrer")
    expect(manual).to_have_attribute("target", "_blank")


def test_nothing_stored_is_more_than_words(page, live):
    """In messages of both, in titles, facts, names, the summary and what the search finds."""
    for number, attack in enumerate(ATTACKS):
        talk(live.client, f"attack-{number}", f"findme {attack}", attack)
        fact = {"user_id": ME, "text": attack[:400], "pinned": True}
        assert live.client.post("/api/facts", json=fact).status_code == 201
    everything = "\n".join(ATTACKS)
    talk(live.client, "everything", everything, everything)
    live.settle()
    assert live.client.patch(f"/api/sessions/everything?user_id={ME}", json={"title": ATTACKS[1]}).status_code == 200
    sections = {"topic": ATTACKS[0], "requirements": list(ATTACKS), "excluded": [{"option": ATTACKS[1], "reason": "x"}]}
    edited = live.client.put("/api/sessions/everything/summary", json={"user_id": ME, "sections": sections})
    assert edited.status_code == 200, edited.text
    page.goto("/#/everything")
    expect(messages(page)).to_have_count(2)
    expect(page.get_by_role("heading", name=ATTACKS[1])).to_be_visible()
    expect(page.get_by_role("complementary", name="Memory")).to_contain_text(ATTACKS[0])
    page.get_by_role("searchbox", name="Search all chats").fill("findme")
    expect(page.get_by_role("navigation", name="Chats")).to_contain_text("findme")
    inert(page)
    page.get_by_role("button", name="What Recap knows").click()
    expect(page.get_by_role("dialog")).to_contain_text("onerror")
    inert(page)


def inert(page: Page) -> None:
    """Nothing of an attack became an element that acts, and no link leads anywhere but to the web or to mail."""
    page.wait_for_load_state("networkidle")
    acting = (
        "iframe, object, embed, form:not(#composer), video, audio, marquee, style, base, template, math, "
        "script:not(head > script, body > #texts)"
    )
    assert page.locator(acting).count() == 0
    assert (
        page.evaluate("document.querySelectorAll('[onerror], [onload], [onclick], [onfocus], [style*=url]').length")
        == 0
    )
    links = page.evaluate("[...document.querySelectorAll('#messages a[href]')].map(a => a.protocol)")
    assert set(links) <= {"http:", "https:", "mailto:"}, links
    assert page.get_by_role("log", name="Messages").locator("img").count() == 0
