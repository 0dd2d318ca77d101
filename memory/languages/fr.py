"""French: greetings, numbers and words of time."""

from memory.languages.language import Language

_NUMBERS = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
_TENS = "vingt trente quarante cinquante soixante"

LANGUAGE = Language(
    "fr",
    small_talk="bonjour|salut|bonsoir|merci(?: beaucoup)?|au revoir|oui|non|bonne (?:nuit|journée)|d'accord|ça va",
    numbers={word: at for at, word in enumerate(_NUMBERS.split())}
    | {word: 10 * at for at, word in enumerate(_TENS.split(), 2)}
    | {"cent": 100, "mille": 1000},
    one="une?",
    relative_times=r"aujourd'hui|demain|hier|prochaine?|dernière?",
)
