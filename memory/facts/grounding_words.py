"""Words that grounding reads: numbers, negations and times.

Tables only.  What counts as said is generous, in the languages that are most written; what is asked of a fact is
English and Chinese, and no more than a word that can't mean anything else.
"""

from __future__ import annotations

import re

_I = re.IGNORECASE

# Cardinals first in English; what else means the number, or may.
_NUMBERS = {
    0: "zero nil null cero 零 〇",
    2: "two couple pair both twice twins second deux zwei beide dos due dois dous twee två два две 二 两 兩 双",
    3: "three triple thrice third trois drei tres tre três drie три 三",
    4: "four quarter fourth quatre vier cuatro quattro quatro fyra четыре 四",
    5: "five fifth cinq fünf cinco cinque vijf fem пять 五",
    6: "six sixth sechs seis sei zes sex шесть 六",
    7: "seven seventh sept sieben siete sette sete zeven sju семь 七",
    8: "eight eighth huit acht ocho otto oito åtta восемь 八",
    9: "nine ninth neuf neun nueve nove negen nio девять 九",
    10: "ten tenth dix zehn diez dieci dez tien tio десять 十",
    11: "eleven eleventh onze elf once undici elva одиннадцать",
    12: "twelve twelfth dozen douze zwölf doce dodici doze twaalf tolv двенадцать",
    13: "thirteen treize dreizehn trece",
    14: "fourteen fortnight quatorze vierzehn catorce",
    15: "fifteen quinze fünfzehn quince",
    16: "sixteen seize sechzehn",
    17: "seventeen siebzehn",
    18: "eighteen achtzehn",
    19: "nineteen neunzehn",
    20: "twenty score vingt zwanzig veinte venti двадцать",
    30: "thirty trente dreißig treinta trenta тридцать",
    40: "forty quarante vierzig cuarenta quaranta сорок",
    50: "fifty half cinquante fünfzig cincuenta cinquanta пятьдесят",
    60: "sixty soixante sechzig sesenta",
    70: "seventy siebzig setenta",
    80: "eighty achtzig ochenta",
    90: "ninety neunzig noventa",
    100: "hundred cent hundert cien cento сто 百",
    1000: "thousand mille tausend mil тысяча 千",
    10000: "万 萬",
    1000000: "million millions",
}
NUMBER_WORDS = {word: number for number, said in _NUMBERS.items() for word in said.split()}
_COUNTED = frozenset(said.split()[0] for number, said in _NUMBERS.items() if 2 <= number < 100)
MULTIPLIERS = {"k": 1000, "thousand": 1000, "千": 1000, "m": 10**6, "million": 10**6, "万": 10**4, "萬": 10**4}
ONE = re.compile(
    r"\b(?:an?|one|single|once|first|only|sole|just|my|un|une|una|uno|um|uma|ein\w*|een|en|ett|один|одна)\b|[一壹]", _I
)


def counted(word: str) -> bool:
    """Whether a word of a fact states a number that must have been said."""
    return word in _COUNTED


_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = re.compile(
    rf"\b\d{{4}}-\d\d(?:-\d\d)?\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b|\d{{4}}年(?:\d{{1,2}}月)?(?:\d{{1,2}}[日号])?"
    rf"|\d{{1,2}}月\d{{1,2}}[日号]|\b{_DAY} (?:of )?{_MONTH}\b(?:,? \d{{4}})?|\b{_MONTH}\b(?: {_DAY}\b)?(?:,? \d{{4}})?"
    r"|\b(?:19|20)\d\d\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    _I,
)
RELATIVE_TIME = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|now|ago|last|next|this|coming|past|since|recently|soon|weekend|week|month"
    r"|year|decade|morning|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day|spring|summer|autumn|winter|days?|weeks"
    r"|months|years|aujourd'hui|demain|hier|prochaine?|dernière?|heute|morgen|gestern|nächste\w*|letzte\w*|hoy|mañana"
    r"|ayer|próxim[oa]|pasad[oa]|oggi|domani|ieri|сегодня|завтра|вчера)\b|[今明昨前后後上下本去来][天年月周週日个個]|星期|礼拜",
    _I,
)

NEGATION = re.compile(r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot)\b|n't\b|[不没沒无無未]", _I)
# What a negation in a fact may rest on, and what says "not" without one.
NEGATIVE = re.compile(
    NEGATION.pattern
    + r"|\b(?:nope|nah|hat(?:e|es|ed|ing)|loath\w*|avoid\w*|quit\w*|stop\w*|g[ai]ve\w* up|lack\w*|except\w*|refus\w*"
    r"|declin\w*|dislik\w*|detest\w*|allerg\w*|intoleran\w*|\w*free|forg[eo]t\w*|los[te]\w*|cancel\w*|fail\w*|unable"
    r"|rarely|hardly|barely|seldom|few|little|too|only|instead|rather|vegan\w*|vegetarian\w*|teetotal\w*|sober"
    r"|against|exclud\w*|rul(?:e|es|ed|ing) out|skip\w*|leav\w*|left|miss\w*|ban\w*|drop\w*|remov\w*|retir\w*|end\w*"
    r"|over|broke\w*|former\w*|used to|ex|less|beyond|out|away|before|until|yet|still|wrong|bad|worst|un\w+|dis\w+"
    r"|im\w+|in\w+able|im\w+able|\w+less|can't|won't|at most|max\w*|limit\w*|under|below|deny|denied|reject\w*)\b"
    r"|[别別非禁戒停忌恨素]|讨厌|拒绝|避免|过敏|除",
    _I,
)
