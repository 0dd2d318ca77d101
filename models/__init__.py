"""The rows.  Alembic makes their tables (see migrations); nothing here makes a schema by itself."""

from models.base import Base
from models.database import Database, Transaction
from models.fact import FactRevisionRow, FactRow
from models.job import JobRow
from models.key import KeyRow
from models.owner import OwnerRow
from models.prompt import PromptRow
from models.session import REVISED, MessageRow, SessionRow, TurnRow
from models.spending import SpendingRow
from models.summary import SummaryRow

__all__ = [
    "REVISED",
    "Base",
    "Database",
    "FactRevisionRow",
    "FactRow",
    "JobRow",
    "KeyRow",
    "MessageRow",
    "OwnerRow",
    "PromptRow",
    "SessionRow",
    "SpendingRow",
    "SummaryRow",
    "Transaction",
    "TurnRow",
]
