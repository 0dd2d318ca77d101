"""What an operator can set: `settings` has every setting, `values` parses those with a form of their own."""

from config.settings import Settings, SettingsError
from config.values import ApiKey, FactWeights

__all__ = ["ApiKey", "FactWeights", "Settings", "SettingsError"]
