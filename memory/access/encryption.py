"""Encrypt the secrets of other servers, with the setting ENCRYPTION_KEY or else a key file in the data folder.

Invariants:
- The key file is whole or not there, and readable by its owner alone: of several processes that make it at once, one
  wins and all use its key (test_model_server).
- No file is made for PostgreSQL: another node could not decrypt what this one stored (test_model_server).
"""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from config import Settings

KEY_FILE = "encryption-key"


class Undecryptable(ValueError):
    """Stored text that this server's key did not encrypt."""


class Encryption:
    """Encrypts and decrypts with this server's key."""

    def __init__(self, settings: Settings) -> None:
        self._setting = settings.encryption_key
        self._file = settings.data_dir / KEY_FILE
        self._may_make = settings.sqlalchemy_url.startswith("sqlite")

    @property
    def refusal(self) -> str | None:
        """Return why nothing can be encrypted; None: it can."""
        if self._setting or self._may_make or self._file.exists():
            return None
        return (
            "On PostgreSQL there may be several nodes, which need one key to encrypt with, and this one has none. Set "
            f"the same ENCRYPTION_KEY on every node, or put one file `{KEY_FILE}` into the data folder of each, and "
            "restart."
        )

    def encrypt(self, text: str) -> str:
        """Return the encrypted form of a text. The key is made at first use. Raises Undecryptable without one."""
        from cryptography.fernet import Fernet  # not at the top: it takes memory, and most servers store no secret

        if self.refusal is not None:
            raise Undecryptable(self.refusal)
        if not self._setting and self._may_make and not self._file.exists():
            _store_once(self._file, Fernet.generate_key())
        try:
            return Fernet(self._key()).encrypt(text.encode()).decode()
        except ValueError:  # somebody changed the file
            raise Undecryptable(f"{self._file} has no key of Fernet.") from None

    def decrypt(self, stored: str) -> str:
        """Return the text. Raises Undecryptable, also without a key."""
        from cryptography.fernet import Fernet, InvalidToken

        try:
            return Fernet(self._key()).decrypt(stored).decode()
        except (InvalidToken, ValueError):  # the latter for no key
            raise Undecryptable from None

    def _key(self) -> str:
        if self._setting or not self._file.exists():
            return self._setting
        return self._file.read_text(encoding="utf-8").strip()


def _store_once(file: Path, key: bytes) -> None:
    """Store a key under this name, unless another process has."""
    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}-") as part:  # of mode 600
        part.write(key)
        part.flush()
        os.fsync(part.fileno())
        try:
            os.link(part.name, file)
        except FileExistsError:
            return
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
