"""What holds for the replicas of a partition: one leader an epoch, and equal logs at rest.

`one_leader`, `watermark_of_leaders` and `complete_leaders` judge events that observers of brokers
wrote; `differences` compares the bytes of log files, once nothing is written any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ottla.protocol.records.batch import walk
from ottla.protocol.records.record import read_records
from ottla.testing.history.arrangement import History
from ottla.testing.history.events import Leads
from ottla.testing.history.transactions import Broken

Batches: TypeAlias = dict[int, bytes]
"""By base offset."""


def one_leader(history: History) -> Iterator[Broken]:
    """Two brokers that led a partition in the same epoch."""
    leaders: dict[tuple[str, int], Leads] = {}
    for leads in history.leads:
        first = leaders.setdefault((leads.partition, leads.leader_epoch), leads)
        if first.broker != leads.broker:
            brokers = f"{first.broker} and {leads.broker}"
            yield Broken(leads.partition, f"{brokers} both led in epoch {leads.leader_epoch}")


def watermark_of_leaders(history: History) -> Iterator[Broken]:
    """A leader whose high watermark fell while it led."""
    last: dict[tuple[str, int, int], int] = {}
    for leads in history.leads:
        key = (leads.partition, leads.leader_epoch, leads.broker)
        if leads.high_watermark < last.get(key, -1):
            detail = (
                f"broker {leads.broker} had {leads.high_watermark} after {last[key]} "
                f"in epoch {leads.leader_epoch}"
            )
            yield Broken(leads.partition, detail)
        last[key] = leads.high_watermark


def complete_leaders(history: History) -> Iterator[Broken]:
    """A leader that began without records that a leader before it had committed."""
    highest: dict[str, dict[int, Leads]] = {}
    for leads in history.leads:
        epochs = highest.setdefault(leads.partition, {})
        for epoch, before in epochs.items():
            if epoch < leads.leader_epoch and 0 <= leads.log_end < before.high_watermark:
                detail = (
                    f"broker {leads.broker} began epoch {leads.leader_epoch} with a log that ends "
                    f"at {leads.log_end}, but broker {before.broker} had committed "
                    f"{before.high_watermark} in epoch {epoch}"
                )
                yield Broken(leads.partition, detail)
        known = epochs.get(leads.leader_epoch)
        if known is None or known.high_watermark < leads.high_watermark:
            epochs[leads.leader_epoch] = leads


def differences(
    logs: Mapping[int, bytes],
    end: int | None = None,
    *,
    start: int = 0,
    compacted: bool = False,
    bases: Mapping[int, int] | None = None,
) -> Iterator[str]:
    """Where the logs of replicas, by broker, differ below `end`, an offset.

    Compared is the range that two replicas both hold, from `start` on: retention may have moved the
    start of one, and what lies below the leader's log start is served by none. A follower keeps it
    until a whole segment can go, even what another leader wrote and the one of now had deleted
    before it could be compared by epoch. `end` None: up to the smallest log end.

    With `compacted`, records instead of batches: each replica cleans its log by itself, so one may
    have dropped what another still has. `bases`: the offset at which the last segment of each
    begins, for logs without records.
    """
    read = {broker: _batches(log) for broker, log in logs.items()}
    ends = {
        broker: max(log_end(log), bases[broker] if bases else 0) for broker, log in logs.items()
    }
    below = min(ends.values(), default=0) if end is None else end
    for broker, its_end in sorted(ends.items()):
        if its_end < below:
            yield f"broker {broker} ends at {its_end}, below {below}"
    (first, *others) = sorted(read)
    for other in others:
        compare = _different_records if compacted else _different_batches
        for where in compare(read[first], read[other], range(start, below)):
            yield f"brokers {first} and {other} differ {where}"


def _batches(log: bytes) -> Batches:
    view = memoryview(log)
    return {header.base_offset: bytes(view[at : at + header.size]) for at, header in walk(view)}


def log_end(log: bytes) -> int:
    """The offset after the last record."""
    return max((header.next_offset for _, header in walk(log)), default=0)


def _different_batches(one: Batches, other: Batches, offsets: range) -> Iterator[str]:
    end = offsets.stop
    both_hold = range(max(offsets.start, min(one, default=end), min(other, default=end)), end)
    for offset in sorted({*one, *other}):
        if offset in both_hold and one.get(offset) != other.get(offset):
            lacking = [offset in batches for batches in (one, other)]
            yield f"at offset {offset} of {end}, present: {lacking}"
            return


def _different_records(one: Batches, other: Batches, offsets: range) -> Iterator[str]:
    ours, theirs = _records(one), _records(other)
    for offset in sorted(ours.keys() & theirs.keys()):
        if offset in offsets and ours[offset] != theirs[offset]:
            yield f"at offset {offset} of {offsets.stop}: {ours[offset]} and {theirs[offset]}"
            return


def _records(batches: Batches) -> dict[int, tuple[bytes | None, bytes | None]]:
    return {
        record.offset: (record.key, record.value)
        for batch in batches.values()
        for record in read_records(batch)
    }
