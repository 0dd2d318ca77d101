"""What an operator can set: `settings` has every setting, `environment` reads their variables, `servers`
says which model server does what, `values` parses settings with a form of their own."""

from config.environment import SettingsError
from config.servers import FallbackModel, Server, Servers
from config.settings import Settings
from config.values import ApiKey, FactWeights

__all__ = ["ApiKey", "FactWeights", "FallbackModel", "Server", "Servers", "Settings", "SettingsError"]
