"""German: greetings, numbers and words of time."""

from memory.languages.language import Language

_NUMBERS = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn"
_NUMBERS += " siebzehn achtzehn neunzehn zwanzig"
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"

LANGUAGE = Language(
    "de",
    small_talk="hallo|(?:guten|schönen) (?:morgen|tag|abend)|moin|servus|danke(?: schön)?|vielen dank|tschüss|ja|nein"
    "|gute nacht|bitte|genau",
    numbers={word: at for at, word in enumerate(_NUMBERS.split())}
    | {word: 10 * at for at, word in enumerate(_TENS.split(), 2)}
    | {"beide": 2, "hundert": 100, "tausend": 1000},
    one=r"ein\w*",
    relative_times=r"heute|morgen|gestern|nächste\w*|letzte\w*",
)
