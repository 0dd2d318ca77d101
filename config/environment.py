"""Read the variables of settings: from the environment, the file `.env`, and files that hold keys."""

import io
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

_KEYS = ("OPENAI_API_KEY", "OPENAI_SUMMARY_API_KEY", "EMBEDDING_API_KEY", "OPENAI_FALLBACK_API_KEY")
KEY_FILES = {name: f"{name}_FILE" for name in _KEYS}
"""The keys that a file may hold, each with the variable that names it."""
PROSE = "SYSTEM_PROMPT"  # whose text may look like settings
KEY_FILE_BYTES_MAX = 10_000  # of a file with a key; a longer one is another file


class SettingsError(ValueError):
    """Setting that cannot be used; the message names the variable and says what it takes."""


def read(environ: Mapping[str, str] | None, dotenv: Path | None, variables: Collection[str]) -> dict[str, str]:
    """Return the variables that are set, and not empty. The environment is stronger than the file `dotenv`.

    A file with a key is named by its variable, or has the key's name in the folder of `dotenv`.
    Raises SettingsError.
    """
    values = read_all(environ, dotenv)
    for name, variable in KEY_FILES.items():
        if name in values:
            continue
        if named := values.get(variable):
            values[name] = _key_in(Path(named).expanduser(), variable)
        elif dotenv is not None and (path := dotenv.parent / name).is_file():
            values[name] = _key_in(path, name)
    chosen = {name: values[name] for name in variables if name in values}
    another = re.compile(rf"[\s;>](?:export\s+)?(?:{'|'.join((*variables, *KEY_FILES.values()))})\s*=")
    for name in chosen.keys() - {PROSE}:
        if another.search(chosen[name]):
            raise SettingsError(f"{name} cannot be used: several settings stand in one line. Give each its own line.")
    return chosen


def read_all(environ: Mapping[str, str] | None, dotenv: Path | None) -> dict[str, str]:
    """Return every variable that is set, and not empty, whether it is a setting or not. Raises SettingsError."""
    values = {} if dotenv is None else _in_file(dotenv)
    values |= os.environ if environ is None else environ
    return {name: text.strip() for name, text in values.items() if text and text.strip()}


def _in_file(dotenv: Path) -> dict[str, str | None]:
    """Return the variables of a `.env` file, none where there is no file. Raises SettingsError."""
    try:
        text = dotenv.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        folder = dotenv.resolve().parent
        if not os.access(folder, os.X_OK):  # as a volume of another account, which the container begins in
            raise SettingsError(
                f"The folder {folder} can't be opened by the account that Recap runs as (user {os.geteuid()}). Give it "
                "to this account, or start Recap in another folder."
            ) from None
        why = (error.strerror if isinstance(error, OSError) else None) or "it is not text in UTF-8"
        raise SettingsError(
            f"The settings can't be read from {dotenv.resolve()} ({why}). Make it a text file in UTF-8 that the user "
            "whom Recap runs as may read, in a folder that this user may open, or remove it."
        ) from None
    for line in parse_stream(io.StringIO(text)):
        if line.error:  # which is not shown, as it may hold a key
            raise SettingsError(
                f"Line {line.original.line} of {dotenv.resolve()} is no setting. Write NAME=value, and close quotes."
            )
    return dotenv_values(stream=io.StringIO(text))


def _key_in(path: Path, variable: str) -> str:
    """Return the key that a file holds. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            text = file.read(KEY_FILE_BYTES_MAX + 1).decode("utf-8").strip()
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "it is not text"
        raise SettingsError(
            f"{variable} cannot be used: the key can't be read from {path} ({why}). Make the file readable for the "
            "user that Recap runs as, or remove it."
        ) from None
    if not text or len(text) > KEY_FILE_BYTES_MAX or len(text.split()) > 1:
        raise SettingsError(
            f"{variable} cannot be used: {path} must hold one key and nothing else. Write the key into it, "
            "or remove it."
        )
    return text
