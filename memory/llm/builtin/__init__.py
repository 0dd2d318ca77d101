"""The built-in model: it needs no network and no key, so that Recap can be tried within a minute.

`reading` reads what a person says of themselves, `changes` what they take back; `digest` makes the summary and the
facts of it, `replies` quotes it.  Only the wiring imports this package.
"""

from memory.llm.builtin.model import BuiltinModel as BuiltinModel
