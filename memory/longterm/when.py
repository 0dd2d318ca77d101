"""The job that writes a kind of long-term memory, at the time that the kind's setting says.

Whatever brings something new for a kind asks for its job with `follow_up`.  A person's job is one row, however often it
is asked for: in the background it waits for a pause in the talk, so that a conversation costs one call of the mini
model and not one for each turn; a schedule is not put off.  A kind that has work as time passes, without anything new,
asks once more at the end of its job.
"""

from __future__ import annotations

from datetime import datetime

from config.when import When
from memory.jobs.outbox import JobRequest
from models import OwnerRow

PAUSE = 120.0  # seconds without anything new, after which a conversation is over for now


def follow_up(when: When, kind: str, owner: OwnerRow, now: datetime) -> tuple[JobRequest, ...]:
    """What to ask the outbox for; nothing where the kind is off, or written only when a call asks for it.

    An `inline` job is due at once, and the turn that is being taken runs it before it ends.
    """
    if when.mode in ("off", "manual"):
        return ()
    background = when.mode == "background"
    delay = PAUSE if background else 0.0
    if when.mode == "schedule":
        delay = (when.next(now) - now).total_seconds()
    return (JobRequest(kind, owner.id, owner.tenant, owner.id, delay=delay, postpone=background),)
