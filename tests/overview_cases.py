"""Persons with many facts, and sentences that a mini model might write of them: true ones, and lies.

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
        Ada's new flat in Tartu costs 640 euros a month.
        Ada has not found anybody for the old flat yet.
        Ada works as a nurse at the East Tallinn hospital.
        Ada starts at the university clinic in Tartu in June.
        Ada's brother Mihkel helps her with the van.
        Ada is allergic to walnuts.
        Ada does not eat meat.
        Ada's cat is called Miisu.
        Miisu is afraid of cars.
        Ada learns Finnish and has an exam on 3 March.
        Ada's Finnish teacher is called Helmi.
        Ada wants to run a half marathon in autumn.
        Ada runs three times a week.
        Ada's knee hurts after long runs.
        Ada owes Liis 80 euros.
        Ada's mother turns 70 in April.
        Ada plans a party for her mother in Viljandi.
        The party needs a room for 25 guests.
        Ada has not booked a room yet.
        Ada's father died in 2019.
        Ada plays the violin.
        Ada's violin needs new strings.
        Ada likes black tea.
        Ada dislikes loud restaurants.
        Ada's phone has a broken display.
        Ada's insurance is with Ergo.
        Ada's bicycle is green.
        Ada parks the bicycle in the cellar.
        Ada reads novels by Tove Jansson.
        Ada's favourite city is Helsinki.
        Ada wakes up at six.
        Ada's savings are 4,200 euros.
        Ada wants to save for a trip to Japan.
        Ada's passport expires in 2028.
        Ada's friend Liis lives in Haapsalu.
        Ada votes by internet.
        Ada's neighbour has two dogs.
        Ada's dentist is Dr Saar.
    """),
    (
        Sentence("Ada moves to Tartu on 12 May 2027, and her brother Mihkel helps with the van.", ("12 May", "van")),
        Sentence("Nobody has been found for the old flat yet.", ("old flat",)),
        Sentence("A Finnish exam comes up on 3 March.", ("Finnish and",)),
        Sentence("The party for her mother in Viljandi needs a room for 25 guests.", ("Viljandi", "25 guests")),
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
        Jonas hat am Freitag einen Termin bei der Bank.
        Jonas möchte sich 2027 selbstständig machen.
        Jonas fehlt noch der Meisterbrief.
        Die Meisterprüfung ist im Juni.
        Jonas hat Rückenschmerzen.
        Der Orthopäde heißt Dr. Vogel.
        Jonas soll nicht schwer heben.
        Jonas trinkt keinen Alkohol.
        Jonas mag Kaffee ohne Milch.
        Jonas spielt Fußball im Verein.
        Jonas ist Torwart.
        Jonas hat einen Hund namens Bruno.
        Bruno ist acht Jahre alt.
        Bruno bekommt Tabletten für das Herz.
        Die Mutter von Jonas lebt in Halle.
        Jonas besucht seine Mutter jeden Sonntag.
        Jonas fährt einen alten Kombi.
        Der Kombi muss im März zum TÜV.
        Jonas spricht etwas Polnisch.
        Jonas hört gern Krimis als Hörbuch.
        Jonas sammelt alte Hobel.
        Jonas ist gegen Pollen allergisch.
        Die Werkstatt ist in der Südvorstadt.
        Jonas steht um fünf auf.
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
        王芳在一家设计公司工作。
        王芳的项目六月底要交。
        客户还没有确认方案。
        王芳的老板叫陈明。
        王芳下个月去北京出差。
        王芳不吃辣。
        王芳对花粉过敏。
        王芳的女儿叫小雨。
        小雨今年九月上小学。
        王芳还没有选好学校。
        王芳的丈夫在医院工作。
        王芳每天早上跑步。
        王芳想学法语。
        王芳的车在修理。
        修车要三千元。
        王芳的父母住在苏州。
        王芳每个月去苏州一次。
        王芳喜欢喝绿茶。
        王芳养了一只猫。
        猫叫团子。
        王芳的生日是五月八日。
        王芳在找一个大一点的房子。
        房子的预算是六百万元。
        王芳周末学画画。
        王芳的眼睛近视。
        王芳的电脑是去年买的。
        王芳不喜欢开会。
        王芳最好的朋友叫李雷。
        李雷在广州工作。
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
