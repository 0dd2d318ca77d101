"""Russian: greetings, numbers and words of time."""

from memory.languages.language import Language

_NUMBERS = "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать"

LANGUAGE = Language(
    "ru",
    small_talk="привет|здравствуйте|спасибо|пока|да|нет|хорошо|добрый (?:день|вечер)|доброе утро",
    numbers={word: at for at, word in enumerate(_NUMBERS.split())}
    | {"две": 2, "двадцать": 20, "тридцать": 30, "сорок": 40, "сто": 100, "тысяча": 1000},
    one="один|одна",
    relative_times="сегодня|завтра|вчера",
)
