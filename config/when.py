"""When a kind of long-term memory is written: the one grammar that the settings of all kinds share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

from cronsim import CronSim, CronSimError

Mode = Literal["off", "manual", "background", "inline", "schedule"]

FORMS = "off, manual, background, inline, `every 30 minutes`, or a cron expression such as `0 4 * * *` (UTC)"
MINUTES_MAX = 525_600  # a year
_EVERY = re.compile(r"every ([1-9]\d{0,5}) minutes?")


@dataclass(frozen=True)
class When:
    """When to write.  A `schedule` comes round every so many `minutes` or, without them, as `cron` says in UTC."""

    mode: Mode
    minutes: int = 0
    cron: str = ""

    def next(self, now: datetime) -> datetime:
        """The next time that a schedule comes round."""
        return now + timedelta(minutes=self.minutes) if self.minutes else next(CronSim(self.cron, now))


def when(raw: str) -> When:
    """What a variable says.  Raises ValueError, also for a cron expression that never comes round."""
    text = " ".join(raw.lower().split())
    if text in ("off", "manual", "background", "inline"):
        return When(cast(Mode, text))
    if (every := _EVERY.fullmatch(text)) and int(every[1]) <= MINUTES_MAX:
        return When("schedule", minutes=int(every[1]))
    found = When("schedule", cron=text.upper())
    try:
        if len(text.split()) != 5:  # with six, the first would be seconds
            raise CronSimError
        found.next(datetime.now(UTC))
    except (CronSimError, StopIteration):
        raise ValueError(f"it takes {FORMS}, which has to come round at some time; not {raw!r}") from None
    return found
