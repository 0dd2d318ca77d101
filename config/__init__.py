"""Settings of an operator.

`settings` has every setting, `environment` reads their variables, `model_servers` says which server does
what, `parsers` reads settings with a form of their own.
"""

from config.environment import SettingsError
from config.model_servers import FallbackModel, Server, Servers
from config.parsers import ApiKey
from config.settings import FactWeights, RecallMode, SearchLanguage, Settings
