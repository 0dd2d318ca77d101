"""Encrypt the secrets of other servers with the setting ENCRYPTION_KEY. Without one, no such secret is stored."""

from __future__ import annotations

HOW = (
    'Make one with `.venv/bin/python -c "from cryptography.fernet import Fernet; '
    'print(Fernet.generate_key().decode())"`, put it into `.env` as ENCRYPTION_KEY, and restart.'
)


class Undecryptable(ValueError):
    """Stored text that this ENCRYPTION_KEY did not encrypt."""


def encrypt(key: str, text: str) -> str:
    """Return the encrypted form of a text. key: the setting, which is there."""
    from cryptography.fernet import Fernet  # not at the top: it takes memory, and most servers store no secret

    return Fernet(key).encrypt(text.encode()).decode()


def decrypt(key: str, stored: str) -> str:
    """Return the text. Raises Undecryptable, also without a key."""
    from cryptography.fernet import Fernet, InvalidToken

    try:
        return Fernet(key).decrypt(stored).decode()
    except (InvalidToken, ValueError):  # the latter for no key
        raise Undecryptable from None
