"""The events of a history: what clients sent, received and were told, one JSON object per line.

Owns: the event types and their file format. Never: checks anything. Times are monotonic, and of
one machine. A process is one life of one client: after a crash it has a new name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

FINAL: Final = "final"
"""The process that reads everything once the faults are over, in either isolation or in both."""
TIMEOUT_MS: Final = 60_000
"""The timeout of transactions, unless their producer set another."""


class Outcome(Enum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Send:
    """One record given to a producer, and the outcome."""

    process: str
    partition: str
    value: str
    invoked_ns: int
    completed_ns: int
    outcome: Outcome
    offset: int = -1
    key: str = ""
    tombstone: bool = False
    """The record deletes its key; `value` is only its name here."""
    transaction: str = ""
    """The name of the transaction it is part of; empty: of none."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Records of one partition that one consumer got with one poll, in order.

    `assigned` counts assignments and seeks of this process on the partition.
    `high_watermark` and `last_stable` are those of the reply, under `leader_epoch`.
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
    """When the reply arrived."""
    group: str = ""
    generation: int = -1
    """The generation of the group while these were read."""


@dataclass(frozen=True, slots=True)
class Owns:
    """A member of a group was assigned a partition, or lost it."""

    process: str
    group: str
    partition: str
    at_ns: int
    gained: bool


@dataclass(frozen=True, slots=True)
class ProducerInit:
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
    """A group's committed offset, as the broker returned it."""

    process: str
    group: str
    partition: str
    offset: int
    invoked_ns: int
    completed_ns: int


@dataclass(frozen=True, slots=True)
class Reset:
    """A group's offset was reset on purpose, at that time at the latest."""

    group: str
    partition: str
    completed_ns: int


@dataclass(frozen=True, slots=True)
class Pipe:
    """Each value of one topic is written to another, exactly once and in order.

    A retry after a failed attempt needs a value of its own: in values of the sink the part after
    an `@` only distinguishes attempts.
    """

    source: str
    sink: str


@dataclass(frozen=True, slots=True)
class Retention:
    """Which records of a partition may be gone at the final read.

    Those below `start`, moved by retention or DeleteRecords; if it is compacted, all but the last
    value of each key.
    """

    partition: str
    start: int = 0
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class Leads:
    """A broker led a partition in an epoch, with this high watermark; as seen inside of it."""

    broker: int
    partition: str
    leader_epoch: int
    high_watermark: int
    at_ns: int
    log_end: int = -1
    """Where its log ended when it began to lead; -1 later."""
    log_start: int = -1
    """Where its log started then; -1 later."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the test did to the broker; for people who read the history."""

    name: str
    at_ns: int


Event: TypeAlias = (
    Send
    | Poll
    | Owns
    | ProducerInit
    | Ended
    | Commit
    | OffsetRead
    | Reset
    | Pipe
    | Retention
    | Leads
    | Fault
)
KINDS: Final[Mapping[str, type[Event]]] = {  # the value of "kind" in a file
    "send": Send,
    "poll": Poll,
    "owns": Owns,
    "begun": ProducerInit,
    "ended": Ended,
    "commit": Commit,
    "offsetread": OffsetRead,
    "reset": Reset,
    "pipe": Pipe,
    "kept": Retention,
    "leads": Leads,
    "fault": Fault,
}
NAMES: Final = {event_type: name for name, event_type in KINDS.items()}


def write(path: Path, events: Iterable[Event]) -> None:
    """Append events to a file, one JSON object a line."""
    with path.open("a") as file:
        for event in events:
            fields = asdict(event)
            if "outcome" in fields:
                fields["outcome"] = fields["outcome"].value
            file.write(json.dumps({"kind": NAMES[type(event)], **fields}) + "\n")


def read(path: Path) -> list[Event]:
    """The events of a file; an unfinished last line of a killed process is skipped."""
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
