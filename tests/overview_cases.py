"""Persons with facts of all kinds, and sentences that a mini model might write of them: true ones, and lies.

Each sentence names its sources by a word that only one fact has; `is_true` says whether it may stay.
"""

from typing import NamedTuple


class Sentence(NamedTuple):
    text: str
    sources: tuple[str, ...]
    is_true: bool = True


class Case(NamedTuple):
    """Person: what they told, a fact a line, and what the model writes."""

    name: str
    facts: tuple[str, ...]
    sentences: tuple[Sentence, ...]


def _lines(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.splitlines())))


ADA = Case(
    "ada",
    _lines("""
        Ada lives in Tallinn, in a flat near the harbour.
        Ada moves to Tartu on 12 May 2027.
        Ada has not found anybody for the old flat yet.
        Ada's brother Mihkel helps her with the van.
        Ada is allergic to walnuts.
        Ada does not eat meat.
        Ada's cat is called Miisu.
        Ada learns Finnish and has an exam on 3 March.
        Ada's Finnish teacher is called Helmi.
        Ada wants to run a half marathon in autumn.
        Ada owes Liis 80 euros.
        Ada's mother turns 70 in April.
        Ada plans a party for her mother in Viljandi.
        The party needs a room for 25 guests.
        Ada has not booked a room yet.
        Ada's friend Liis lives in Haapsalu.
        Ada asks guests if they want any more tea.
    """),
    (
        Sentence("Ada moves to Tartu on 12 May 2027, and her brother Mihkel helps with the van.", ("12 May", "van")),
        Sentence("Nobody has been found for the old flat yet.", ("old flat",)),
        Sentence("A Finnish exam comes up on 3 March.", ("Finnish and",)),
        Sentence("The party for her mother in Viljandi needs a room for 25 guests.", ("Viljandi", "25 guests")),
        Sentence("Ada asks guests if they want more tea.", ("more tea",)),
        Sentence("Ada moves to Riga on 12 May 2027.", ("12 May",), False),
        Sentence("Ada moves to Tartu on 21 May 2027.", ("12 May",), False),
        Sentence("Ada eats meat.", ("eat meat",), False),
        Sentence("The room for the party is booked.", ("booked a room",), False),
        Sentence("Ada is pregnant and looks for a pram.", ("walnuts",), False),
        Sentence("Ada owes Liis 800 euros.", ("owes Liis",), False),
        Sentence("Ada is allergic to walnuts.", (), False),
    ),
)

JONAS = Case(
    "jonas",
    _lines("""
        Jonas wohnt in Leipzig.
        Jonas arbeitet als Tischler bei der Firma Holzmann.
        Jonas baut für Familie Krause eine Küche.
        Die Küche soll am 15. Februar fertig sein.
        Für die Küche fehlen noch die Griffe.
        Die Küche kostet 9.800 Euro.
        Jonas hat die Rechnung noch nicht geschrieben.
        Jonas ist verheiratet mit Carla.
        Carla erwartet im April ein Kind.
        Jonas und Carla suchen eine größere Wohnung.
        Die Wohnung darf höchstens 1.200 Euro kosten.
        Die Meisterprüfung ist im Juni.
        Jonas trinkt keinen Alkohol.
        Jonas mag Kaffee ohne Milch.
        Jonas hat einen Hund namens Bruno.
        Der Kombi muss im März zum TÜV.
    """),
    (
        Sentence("Die Küche für Familie Krause soll am 15. Februar fertig sein.", ("Familie Krause", "15. Februar")),
        Sentence("Die Griffe fehlen noch, und die Rechnung ist noch nicht geschrieben.", ("Griffe", "Rechnung")),
        Sentence("Carla erwartet im April ein Kind, und beide suchen eine größere Wohnung.", ("im April", "größere")),
        Sentence("Im Juni steht die Meisterprüfung an, im März der TÜV.", ("Meisterprüfung", "TÜV")),
        Sentence("Jonas hat die Rechnung schon geschrieben.", ("Rechnung",), False),
        Sentence("Die Küche kostet 98.000 Euro.", ("9.800",), False),
        Sentence("Jonas zieht im April mit Carla nach Dresden.", ("im April",), False),
        Sentence("Jonas trinkt Alkohol.", ("Alkohol",), False),
    ),
)

FANG = Case(
    "fang",
    _lines("""
        王芳住在上海。
        王芳的项目六月底要交。
        客户还没有确认方案。
        王芳的老板叫陈明。
        王芳的女儿叫小雨。
        小雨今年九月上小学。
        王芳还没有选好学校。
        王芳的丈夫在医院工作。
        王芳喜欢喝绿茶。
        王芳在找一个大一点的房子。
        房子的预算是六百万元。
        王芳周末学画画。
    """),
    (
        Sentence("王芳的项目六月底要交，客户还没有确认方案。", ("六月底", "确认方案")),
        Sentence("小雨今年九月上小学，学校还没有选好。", ("九月上", "选好学校")),
        Sentence("王芳在找大一点的房子，预算是六百万元。", ("大一点", "预算")),
        Sentence("客户已经确认方案。", ("确认方案",), False),
        Sentence("王芳怀孕了，要搬到深圳。", ("绿茶",), False),
        Sentence("房子的预算是九百万元。", ("预算",), False),
    ),
)

CASES = (ADA, JONAS, FANG)
