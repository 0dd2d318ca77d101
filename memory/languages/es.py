"""Spanish: greetings, numbers and words of time."""

from memory.languages.language import Language

_NUMBERS = "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince"
_TENS = "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien"

LANGUAGE = Language(
    "es",
    small_talk="hola|buen(?:os|as)? (?:d[ií]as?|tardes|noches)|(?:muchas )?gracias|de nada|hasta luego|vale|adi[oó]s",
    numbers={word: at for at, word in enumerate(_NUMBERS.split())}
    | {word: 10 * at for at, word in enumerate(_TENS.split(), 2)}
    | {"cento": 100, "ciento": 100, "mil": 1000},
    one="una?",
    relative_times=r"hoy|mañana|ayer|próxim[oa]|pasad[oa]",
)
