"""The rows, and the one place that opens transactions."""

from models.database import Database, Transaction, Upsert
from models.items import ItemRow, ItemSourceRow, ItemVersionRow
from models.links import LinkRow
from models.rows import (
    REVISED,
    Base,
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
    UTCDateTime,
)

__all__ = [
    "REVISED",
    "Base",
    "Database",
    "FactRevisionRow",
    "FactRow",
    "ItemRow",
    "ItemSourceRow",
    "ItemVersionRow",
    "JobRow",
    "KeyRow",
    "LinkRow",
    "MessageRow",
    "ModelServerRow",
    "OwnerRow",
    "PromptRow",
    "QueueRow",
    "SessionRow",
    "SpendingRow",
    "SummaryRow",
    "Transaction",
    "TurnRow",
    "UTCDateTime",
    "Upsert",
]
