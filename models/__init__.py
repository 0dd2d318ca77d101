"""Rows, and the one place that opens transactions."""

from models.base import Base, Refusal, UTCDateTime, as_value, columns_of
from models.database import Database, Transaction, Upsert, engine_options, for_update, has_row_locks, retry_on_conflict
from models.documents import DocumentRow
from models.events import EventRow
from models.facts import FactRevisionRow, FactRow
from models.jobs import JobRow, QueueRow
from models.keys import KeyRow
from models.messages import REVISED, MessageRow
from models.model_server import ModelServerRow
from models.oauth import GrantRow, TokenRow
from models.owners import OwnerRow, SpendingRow
from models.prompts import PromptRow
from models.retention import ArchiveRow
from models.sessions import SessionRow
from models.store import ItemRow, ItemSourceRow, ItemVersionRow
from models.summaries import IS_NEWEST_SUMMARY, IS_SUMMARY_IN_USE, SummaryRow
from models.turns import TurnRow
from models.webhooks import LaneRow, WebhookRow
