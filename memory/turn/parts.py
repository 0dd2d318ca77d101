"""What the steps of a turn work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from config import Settings
from memory.access.budgets import Budgets
from memory.conversation_types import ConversationTypes
from memory.examples import Examples
from memory.jobs import Outbox
from memory.knowledge.facts import Facts
from memory.leases import Leases
from memory.llm.model_server import ModelServer
from memory.ops.metrics import Metrics
from memory.prompts.prompts import Prompts
from memory.recall.recall import Recall
from memory.sessions.sessions import Sessions
from models import Database


@dataclass(frozen=True)
class Parts:
    """The services that a turn calls."""

    settings: Settings
    database: Database
    sessions: Sessions
    facts: Facts
    prompts: Prompts
    recall: Recall
    examples: Examples
    types: ConversationTypes
    leases: Leases
    metrics: Metrics
    outbox: Outbox
    budgets: Budgets
    model_server: ModelServer
    now: Callable[[], datetime]
