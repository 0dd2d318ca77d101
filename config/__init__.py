"""Settings of an operator.

`settings` has every setting, `environment` reads their variables, `servers` says which model server does what,
`parsers` reads settings with a form of their own.
"""

from config.environment import SettingsError
from config.parsers import ApiKey
from config.servers import FallbackModel, Server, Servers
from config.settings import FactWeights, Settings

__all__ = ["ApiKey", "FactWeights", "FallbackModel", "Server", "Servers", "Settings", "SettingsError"]
