"""The vocabulary of a history: what a client did, heard and saw, one JSON object a line.

Owns the events and their file. Never judges. Times are monotonic, and of one machine. A process is
one life of one client: what begins anew after a crash has a new name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

FINAL: Final = "final"
"""The process that reads everything once the faults are over, in either isolation or in both."""
TIMEOUT_MS: Final = 60_000
"""Of transactions, unless their producer asked for another."""


class Outcome(Enum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Send:
    """One record given to a producer, and what the producer heard."""

    process: str
    partition: str
    value: str
    invoked_ns: int
    completed_ns: int
    outcome: Outcome
    offset: int = -1
    key: str = ""
    tombstone: bool = False
    """It says that its key has no value; `value` is only its name here."""
    transaction: str = ""
    """The name of the transaction it is part of; empty: of none."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Records one consumer got in one go from one partition, in order.

    `assigned` counts how often this process began anew on the partition (a seek, an assignment).
    `high_watermark` and `last_stable` are what the broker said with them, under `leader_epoch`.
    """

    process: str
    partition: str
    assigned: int
    records: tuple[tuple[int, str], ...]
    high_watermark: int = -1
    leader_epoch: int = -1
    committed: bool = False
    """Read with read_committed."""
    last_stable: int = -1
    at_ns: int = -1
    """When the answer came."""
    group: str = ""
    generation: int = -1
    """Of the group, while these were read."""


@dataclass(frozen=True, slots=True)
class Owns:
    """A member of a group was given a partition, or gave it up, or died with it."""

    process: str
    group: str
    partition: str
    at_ns: int
    gained: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """A process became the producer of a transactional id (InitProducerId)."""

    process: str
    transactional_id: str
    invoked_ns: int
    completed_ns: int
    outcome: Outcome
    timeout_ms: int = TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class Ended:
    """A process asked for the end of a transaction, after everything in it was acknowledged."""

    process: str
    transaction: str
    commit: bool
    invoked_ns: int
    completed_ns: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Commit:
    """A group's offset was committed, within a transaction if it is named."""

    process: str
    group: str
    partition: str
    offset: int
    invoked_ns: int
    completed_ns: int
    outcome: Outcome
    transaction: str = ""
    generation: int = -1


@dataclass(frozen=True, slots=True)
class OffsetRead:
    """A group's committed offset, as the broker told it."""

    process: str
    group: str
    partition: str
    offset: int
    invoked_ns: int
    completed_ns: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Somebody was allowed to set a group's offset back, until then."""

    group: str
    partition: str
    completed_ns: int


@dataclass(frozen=True, slots=True)
class Pipe:
    """Each value of one topic is written to another, exactly once and in order.

    One that was written anew, after a try that failed, needs a name of its own: what follows an
    `@` in a value of the sink only tells the tries apart.
    """

    source: str
    sink: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What a partition need not have any more when it is read for the last time.

    Nothing below `start`, which retention or DeleteRecords moved; where it is compacted, only the
    last value of each key.
    """

    partition: str
    start: int = 0
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the test did to the broker; for whoever reads the history."""

    name: str
    at_ns: int


Event: TypeAlias = (
    Send | Poll | Owns | Begun | Ended | Commit | OffsetRead | Reset | Pipe | Kept | Fault
)
KINDS: Final = {
    kind.__name__.lower(): kind
    for kind in (Send, Poll, Owns, Begun, Ended, Commit, OffsetRead, Reset, Pipe, Kept, Fault)
}


def write(path: Path, events: Iterable[Event]) -> None:
    """Append events to a file, one JSON object a line."""
    with path.open("a") as file:
        for event in events:
            fields = asdict(event)
            if "outcome" in fields:
                fields["outcome"] = fields["outcome"].value
            file.write(json.dumps({"kind": type(event).__name__.lower(), **fields}) + "\n")


def read(path: Path) -> list[Event]:
    """The events of a file; a last line that a killed process left unfinished is passed over."""
    events: list[Event] = []
    for line in path.read_text().splitlines():
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        kind = fields.pop("kind")
        if "outcome" in fields:
            fields["outcome"] = Outcome(fields["outcome"])
        if "records" in fields:
            fields["records"] = tuple((offset, value) for offset, value in fields["records"])
        events.append(KINDS[kind](**fields))
    return events
