"""The rows, and the one place that opens transactions."""

from models.archives import ArchiveRow
from models.base import Base, Refusal, UTCDateTime
from models.database import Database, Transaction, Upsert, engine_options, locked, retried
from models.items import ItemRow, ItemSourceRow, ItemVersionRow
from models.rows import (
    REVISED,
    FactRevisionRow,
    FactRow,
    JobRow,
    KeyRow,
    MessageRow,
    ModelServerRow,
    OwnerRow,
    PromptRow,
    QueueRow,
    SessionRow,
    SpendingRow,
    SummaryRow,
    TurnRow,
)

__all__ = [
    "REVISED",
    "ArchiveRow",
    "Base",
    "Database",
    "FactRevisionRow",
    "FactRow",
    "ItemRow",
    "ItemSourceRow",
    "ItemVersionRow",
    "JobRow",
    "KeyRow",
    "MessageRow",
    "ModelServerRow",
    "OwnerRow",
    "PromptRow",
    "QueueRow",
    "Refusal",
    "SessionRow",
    "SpendingRow",
    "SummaryRow",
    "Transaction",
    "TurnRow",
    "UTCDateTime",
    "Upsert",
    "engine_options",
    "locked",
    "retried",
]
