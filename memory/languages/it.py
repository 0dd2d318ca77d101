"""Italian: greetings, numbers and words of time."""

from memory.languages.language import Language

_NUMBERS = "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici"

LANGUAGE = Language(
    "it",
    small_talk="ciao|grazie(?: mille)?|prego|buongiorno|buonasera|buonanotte|arrivederci|va bene|sì",
    numbers={word: at for at, word in enumerate(_NUMBERS.split())} | {"venti": 20, "cento": 100, "mille": 1000},
    one="una?",
    relative_times="oggi|domani|ieri",
)
