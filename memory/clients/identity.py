"""Which stored conversation a request carries on that names no session.

A client that gives no id sends its history, and that has to do.  Conversations that begin with the same words of the
same person under the same key have ids that begin alike, `auto-` and a hash of those words, and are numbered: so all
that may be meant are found at once.  The instructions are not part of it, since many clients write the time into them.
Which of them it is, `kinship` tells from what they have in common:

    carried on   The list begins with all that is stored.  The longest wins.
    once more    The list is what is stored but for the last answer: a retry, or the person wants another one.
    edited       The list begins as what is stored, at least as far as the first answer, and then differs.
    truncated    The list begins with other words, but what is stored ends as it goes on, for three messages or more.

Anything else is a new conversation.  So two conversations that begin with the same words stay two as soon as one of
them has gone on, or their first answers differ.  What can't be told apart:

- A first question alone, asked again before the person said more, is a retry or wants another answer.  Of a person who
  was named that is assumed: at worst a conversation of one question goes on a branch of its twin.  Where nobody is
  named it may be two people, so it is a new conversation: nobody's words may come to a stranger, and where there is no
  person, nothing is recalled from one session to another anyway.
- A client that sends its newest message alone and gives no id: each message begins a conversation of its own.

A conversation takes one turn at a time.  So one that is being answered just now is not meant by a request that asks
for something else, and with no answer in a list that is asked many times at once, each is a conversation of its own.

Pure functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from memory.clients.reconcile import Said, common, reconcile
from memory.domain import Caller

PREFIX = "auto-"
TRUNCATED_MIN = 3  # messages in common that tell a truncated conversation; two may be a greeting and its answer

CARRIED_ON, ONCE_MORE, EDITED, TRUNCATED = 4, 3, 2, 1


def opening(caller: Caller, sent: Sequence[Said]) -> str:
    """What the ids of all sessions begin with whose conversation begins as this one."""
    first = next((one for one in sent if one.role == "user"), sent[0])
    parts = (caller.tenant, caller.user_id, first.words, first.attachments)
    return PREFIX + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def numbered(opening: str, taken: Sequence[str]) -> str:
    """The first id of this opening that is not taken."""
    number = len(taken) + 1
    while (candidate := opening if number == 1 else f"{opening}-{number}") in taken:
        number += 1
    return candidate


def kinship(line: Sequence[Said], sent: Sequence[Said], *, busy: bool, named: bool) -> tuple[int, int]:
    """How near what is stored in a session is to what a client sent: the nearer, the larger; (0, 0) for not at all.

    `busy`: it is being answered now.  `named`: the person is known.
    """
    shared = common(line, sent)
    answered = any(one.role == "assistant" for one in sent)
    rank = 0
    if busy:
        rank = CARRIED_ON if answered and shared == len(sent) == len(line) else 0
    elif line and shared == len(line):
        rank = CARRIED_ON
    elif shared == len(sent):
        last_turn = all(one.role == "assistant" for one in line[shared:])
        rank = (ONCE_MORE if last_turn else EDITED) if answered else ONCE_MORE if last_turn and named else 0
    elif any(one.role == "assistant" for one in sent[:shared]):
        rank = EDITED
    certain = sum(not one.erased for one in line[:shared])  # an erased message may have been any
    if not rank and not shared:
        certain = _shared_end(line, sent)
        rank = TRUNCATED if certain >= TRUNCATED_MIN else 0
    return (rank, certain) if rank else (0, 0)


def _shared_end(line: Sequence[Said], sent: Sequence[Said]) -> int:
    """How many messages of the list the line ends with, or ends with but for its last answer."""
    plan = reconcile(line, sent, whole=True)
    to_the_end = all(one.role == "assistant" for one in line[plan.keep :])
    certain = sum(not line[place].erased for place in plan.places)
    return certain if to_the_end else 0
