"""The rows.  Alembic makes their tables (see migrations); nothing here makes a schema by itself."""

from models.base import Base, loaded, table_of, write_changes
from models.database import Database
from models.fact import FactRevisionRow, FactRow
from models.job import JobRow
from models.key import KeyRow
from models.owner import OwnerRow
from models.prompt import PromptRow
from models.session import REVISED, MessageRow, SessionRow, TurnRow, session_by_id, session_named
from models.spending import SpendingRow
from models.statement import Rows, Statement
from models.summary import SummaryRow
from models.transaction import Transaction

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
    "Rows",
    "SessionRow",
    "SpendingRow",
    "Statement",
    "SummaryRow",
    "Transaction",
    "TurnRow",
    "loaded",
    "session_by_id",
    "session_named",
    "table_of",
    "write_changes",
]
