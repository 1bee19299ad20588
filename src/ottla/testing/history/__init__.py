"""What clients did and saw, and the promises it may have broken.

The programs that drive the clients write events; `check` returns every promise that the events show
to be broken. Never talks to a broker. An unknown outcome counts as done only if it was observed.

- `events`        the vocabulary, as JSON lines, so that several processes can write one history
- `arrangement`   the events, arranged as the checks want them
- `records`       what holds for the records of one partition
- `transactions`  all of a transaction or nothing of it, no zombies, readers not held up for ever
- `groups`        one reader a generation, offsets that only rise, exactly-once pipelines
- `replicas`      one leader an epoch, and equal logs on all replicas at rest
- `checker`       every invariant, and `check`
"""

from __future__ import annotations

from ottla.testing.history.checker import INVARIANTS, Violation, check
from ottla.testing.history.events import (
    FINAL,
    Commit,
    Ended,
    Event,
    Fault,
    Leads,
    OffsetRead,
    Outcome,
    Owns,
    Pipe,
    Poll,
    ProducerInit,
    Reset,
    Retention,
    Send,
    read,
    write,
)

Begun = ProducerInit  # its name in earlier versions
Kept = Retention  # likewise

__all__ = [
    "FINAL",
    "INVARIANTS",
    "Begun",
    "Commit",
    "Ended",
    "Event",
    "Fault",
    "Kept",
    "Leads",
    "OffsetRead",
    "Outcome",
    "Owns",
    "Pipe",
    "Poll",
    "ProducerInit",
    "Reset",
    "Retention",
    "Send",
    "Violation",
    "check",
    "read",
    "write",
]
