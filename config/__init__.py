"""What an operator can set: `settings` has every setting with its default, `parsing` how each kind is read."""

from config.parsing import API_KEY_CHARS_MIN, ApiKey, FactWeights, SettingsError
from config.settings import DEFAULT_MAIN_MODEL, DEFAULT_MINI_MODEL, Settings

__all__ = [
    "API_KEY_CHARS_MIN",
    "DEFAULT_MAIN_MODEL",
    "DEFAULT_MINI_MODEL",
    "ApiKey",
    "FactWeights",
    "Settings",
    "SettingsError",
]
