"""What an operator can set: `settings` has every setting, `values` parses those with a form of their own."""

from config.settings import DEFAULT_MAIN_MODEL, DEFAULT_MINI_MODEL, Settings, SettingsError
from config.values import API_KEY_CHARS_MIN, ApiKey, FactWeights

__all__ = [
    "API_KEY_CHARS_MIN",
    "DEFAULT_MAIN_MODEL",
    "DEFAULT_MINI_MODEL",
    "ApiKey",
    "FactWeights",
    "Settings",
    "SettingsError",
]
