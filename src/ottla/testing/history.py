"""What clients did and saw, and the promises it may have broken.

Owns the vocabulary of a history (JSON lines, so that several processes can write one) and a
function for each invariant, listed in `INVARIANTS`. Never talks to a broker: whoever drives the
clients writes the events, and at the end reads every partition anew as process `FINAL`.

An unknown outcome counts as written only if somebody saw it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

FINAL: Final = "final"
"""The process that reads everything once the faults are over."""


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


@dataclass(frozen=True, slots=True)
class Poll:
    """Records one consumer got in one go from one partition, in order.

    `assigned` counts how often this process began anew on the partition (a seek, an assignment).
    `high_watermark` is what the broker said with them, under `leader_epoch`.
    """

    process: str
    partition: str
    assigned: int
    records: tuple[tuple[int, str], ...]
    high_watermark: int = -1
    leader_epoch: int = -1


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


Event: TypeAlias = Send | Poll | Kept | Fault
_KINDS: Final = {"send": Send, "poll": Poll, "kept": Kept, "fault": Fault}


class Violation(NamedTuple):
    invariant: str
    partition: str
    detail: str


def write(path: Path, events: Iterable[Event]) -> None:
    """Append events to a file, one JSON object a line."""
    with path.open("a") as file:
        for event in events:
            fields = asdict(event)
            if isinstance(event, Send):
                fields["outcome"] = event.outcome.value
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
        if kind == "send":
            fields["outcome"] = Outcome(fields["outcome"])
        if kind == "poll":
            fields["records"] = tuple((offset, value) for offset, value in fields["records"])
        events.append(_KINDS[kind](**fields))
    return events


class History:
    """The events, arranged as the checks want them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.sends: dict[str, list[Send]] = defaultdict(list)
        self.polls: dict[str, list[Poll]] = defaultdict(list)
        self.kept: dict[str, Kept] = {}
        for event in events:
            if isinstance(event, Send):
                self.sends[event.partition].append(event)
            elif isinstance(event, Poll):
                self.polls[event.partition].append(event)
            elif isinstance(event, Kept):
                self.kept[event.partition] = event

    def partitions(self) -> list[str]:
        return sorted({*self.sends, *self.polls})

    def seen(self, partition: str) -> Iterator[tuple[int, str]]:
        for poll in self.polls[partition]:
            yield from poll.records

    def final(self, partition: str) -> dict[int, str]:
        return {
            offset: value
            for poll in self.polls[partition]
            if poll.process == FINAL
            for offset, value in poll.records
        }

    def lasting(self, partition: str) -> Iterator[Send]:
        """The acknowledged records that must be there whenever somebody looks."""
        kept = self.kept.get(partition, Kept(partition))
        for send in self.sends[partition]:
            known = send.outcome is Outcome.OK and (send.offset < 0 or send.offset >= kept.start)
            if known and not kept.compacted:
                yield send


def inconsistent_offset(history: History, partition: str) -> Iterator[str]:
    """An offset that ever showed two values, to a reader or in an acknowledgement."""
    values: dict[int, set[str]] = defaultdict(set)
    for offset, value in history.seen(partition):
        values[offset].add(value)
    for send in history.sends[partition]:
        if send.outcome is Outcome.OK and send.offset >= 0:
            values[send.offset].add(send.value)
    for offset, shown in sorted(values.items()):
        if len(shown) > 1:
            yield f"offset {offset} showed {sorted(shown)}"


def lost_write(history: History, partition: str) -> Iterator[str]:
    """Acknowledged, never read, though something later was."""
    seen = dict(history.seen(partition))
    highest = max(seen, default=-1)
    shown = set(seen.values())
    for send in history.lasting(partition):
        if send.value not in shown and send.offset < highest:
            yield f"{send.value} was acknowledged at {send.offset}, reads reached {highest}"


def unseen(history: History, partition: str) -> Iterator[str]:
    """Acknowledged, absent from the final reads."""
    final = set(history.final(partition).values())
    for send in history.lasting(partition):
        if send.value not in final:
            yield f"{send.value} was acknowledged at {send.offset} and is not there"


def compaction(history: History, partition: str) -> Iterator[str]:
    """Each key has its last value; one that a tombstone ended does not come back."""
    kept = history.kept.get(partition, Kept(partition))
    if not kept.compacted:
        return
    offsets = {value: offset for offset, value in history.final(partition).items()}
    final: dict[str, list[int]] = defaultdict(list)
    last: dict[str, tuple[int, Send]] = {}
    for send in history.sends[partition]:
        offset = offsets.get(send.value, send.offset if send.outcome is Outcome.OK else -1)
        if send.value in offsets:
            final[send.key].append(offset)
        if offset >= max(kept.start, last[send.key][0] if send.key in last else 0):
            last[send.key] = (offset, send)
    for key, (offset, send) in sorted(last.items()):
        if offset in final[key]:
            continue
        if not send.tombstone:
            yield f"{send.value}, the last of key {key}, stood at {offset} and is not there"
        elif final[key]:
            yield f"key {key} ended at {offset}, and stands at {sorted(final[key])} again"


def duplicate(history: History, partition: str) -> Iterator[str]:
    """One value at two offsets."""
    offsets: dict[str, set[int]] = defaultdict(set)
    for offset, value in history.seen(partition):
        offsets[value].add(offset)
    for value, places in sorted(offsets.items()):
        if len(places) > 1:
            yield f"{value} stands at {sorted(places)}"


def phantom(history: History, partition: str) -> Iterator[str]:
    """A value nobody wrote, or that a producer was told had failed for good."""
    written = {send.value for send in history.sends[partition] if send.outcome is not Outcome.FAIL}
    for offset, value in history.seen(partition):
        if value not in written:
            yield f"{value} at {offset} was not written"


def poll_order(history: History, partition: str) -> Iterator[str]:
    """Within one assignment offsets only rise, and pass over nothing the final reads have."""
    final = sorted(history.final(partition))
    following = dict(pairwise(final))
    last: dict[tuple[str, int], int] = {}
    for poll in history.polls[partition]:
        key = (poll.process, poll.assigned)
        for offset, _ in poll.records:
            before = last.get(key)
            if before is not None and offset <= before:
                yield f"{poll.process} read {offset} after {before}"
            elif before in following and offset > following[before]:
                yield f"{poll.process} read {offset} after {before}, over {following[before]}"
            last[key] = offset


def send_order(history: History, partition: str) -> Iterator[str]:
    """What one producer sent first stands first."""
    last: dict[str, Send] = {}
    for send in sorted(history.sends[partition], key=lambda send: send.invoked_ns):
        if send.outcome is not Outcome.OK or send.offset < 0:
            continue
        before = last.get(send.process)
        if before is not None and send.offset <= before.offset:
            yield f"{send.value} at {send.offset} was sent after {before.value} at {before.offset}"
        last[send.process] = send


def high_watermark(history: History, partition: str) -> Iterator[str]:
    """It does not fall while one leader leads, as one reader hears it."""
    last: dict[tuple[str, int], int] = {}
    for poll in history.polls[partition]:
        if poll.high_watermark < 0:
            continue
        key = (poll.process, poll.leader_epoch)
        if poll.high_watermark < last.get(key, -1):
            yield f"{poll.process} heard {poll.high_watermark} after {last[key]}"
        last[key] = poll.high_watermark


Invariant: TypeAlias = Callable[[History, str], Iterator[str]]
INVARIANTS: Final[tuple[Invariant, ...]] = (
    inconsistent_offset,
    lost_write,
    unseen,
    compaction,
    duplicate,
    phantom,
    poll_order,
    send_order,
    high_watermark,
)


def check(events: Iterable[Event]) -> list[Violation]:
    """Every broken promise in a history."""
    history = History(events)
    return [
        Violation(invariant.__name__, partition, detail)
        for partition in history.partitions()
        for invariant in INVARIANTS
        for detail in invariant(history, partition)
    ]
