"""What holds for transactions: all or nothing, the newest producer only, nobody held up for ever.

One function for each promise; each yields where it was broken, and how in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.testing.history.arrangement import Fate, History
from ottla.testing.history.events import (
    TIMEOUT_MS,
    Commit,
    Ended,
    Outcome,
    Poll,
    ProducerInit,
    Retention,
    Send,
)

LSO_BOUND_NS: Final = 20_000_000_000
"""How long after the last transaction readers of committed data may be held up: the ten seconds
at which overdue transactions are looked for, and as long again for a coordinator to come back."""


class Broken(NamedTuple):
    where: str
    detail: str


def aborted_read(history: History) -> Iterator[Broken]:
    """A reader of committed data saw a record of a transaction that definitely failed."""
    for partition, polls in sorted(history.polls.items()):
        failed = {
            send.value: send.transaction
            for send in history.sends[partition]
            if history.fate_of(send) is Fate.ABORTED
        }
        for poll in polls:
            for offset, value in poll.records if poll.committed else ():
                if value in failed:
                    detail = f"{poll.process} read {value} at {offset}, of {failed[value]}"
                    yield Broken(partition, detail)


def torn_transaction(history: History) -> Iterator[Broken]:
    """Part of a transaction counts, and the rest does not: a record, or an offset."""
    for name, fate in sorted(history.fates.items()):
        if fate is Fate.COMMITTED:
            yield from _missing_records(history, name)
            yield from _missing_offsets(history, name)


def _missing_records(history: History, name: str) -> Iterator[Broken]:
    for part in history.parts[name]:
        partition = part.partition
        kept = history.retention.get(partition, Retention(partition))
        lasts = not kept.compacted and (part.offset < 0 or part.offset >= kept.start)
        if part.outcome is Outcome.FAIL:
            yield Broken(partition, f"{name} was committed without {part.value}")
        elif lasts and part.value in history.held_back.get(partition, ()):
            yield Broken(partition, f"{name} counts, and {part.value} of it is not there")


def _missing_offsets(history: History, name: str) -> Iterator[Broken]:
    """Offsets only rise, so that one that is not reached at last was never committed."""
    for commit in history.commits:
        if commit.transaction != name:
            continue
        looks = [
            look
            for look in history.offset_reads
            if (look.group, look.partition) == (commit.group, commit.partition)
        ]
        if not looks or looks[-1].invoked_ns < commit.completed_ns:
            continue
        told = looks[-1].offset
        if told < commit.offset and not _was_reset(history, commit):
            detail = f"{name} counts, and {commit.group} stands at {told}, not at {commit.offset}"
            yield Broken(commit.partition, detail)


def _was_reset(history: History, commit: Commit) -> bool:
    return any(
        (reset.group, reset.partition) == (commit.group, commit.partition)
        and reset.completed_ns >= commit.invoked_ns
        for reset in history.resets
    )


def zombie(history: History) -> Iterator[Broken]:
    """Something succeeded for a process that a newer one had replaced before it asked."""
    replaced = _replaced(history)
    for one in _successes(history):
        begun = replaced.get(one.process)
        if begun is not None and one.invoked_ns > begun.completed_ns:
            detail = f"{_what(one)} of {one.process} succeeded after {begun.process} had begun"
            yield Broken(begun.transactional_id, detail)


def _replaced(history: History) -> dict[str, ProducerInit]:
    """Who came after each process, as the producer of its transactional id."""
    known = [begun for begun in history.producer_inits if begun.outcome is Outcome.OK]
    by_time = sorted(known, key=lambda begun: begun.completed_ns)
    found: dict[str, ProducerInit] = {}
    for older in by_time:
        for newer in by_time:
            if (
                newer.transactional_id == older.transactional_id
                and newer.process != older.process
                and newer.invoked_ns > older.completed_ns
            ):
                found.setdefault(older.process, newer)
    return found


def _successes(history: History) -> Iterator[Send | Ended | Commit]:
    for sends in history.parts.values():
        yield from (send for send in sends if send.outcome is Outcome.OK)
    for ends in history.ends.values():
        yield from (end for end in ends if end.outcome is Outcome.OK)
    for commit in history.commits:
        if commit.transaction and commit.outcome is Outcome.OK:
            yield commit


def _what(one: Send | Ended | Commit) -> str:
    match one:
        case Send():
            return f"writing {one.value}"
        case Ended():
            return f"ending {one.transaction}"
        case Commit():
            return f"committing {one.offset} of {one.partition}"


def stuck_lso(history: History, bound_ns: int = LSO_BOUND_NS) -> Iterator[Broken]:
    """The last stable offset stood still beyond its bound, and no transaction was open."""
    for partition, polls in sorted(history.polls.items()):
        told = sorted((poll for poll in polls if _tells(poll)), key=lambda poll: poll.at_ns)
        lives = sorted(_lives(history, partition))
        for first, last in _still(told):
            moments = [first.at_ns]
            for life in lives:
                if life.start_ns <= last.at_ns and life.end_ns >= moments[-1]:
                    moments += [max(life.start_ns, moments[-1]), min(life.end_ns, last.at_ns)]
            moments.append(last.at_ns)
            free = [end - start for start, end in zip(moments[::2], moments[1::2], strict=True)]
            if max(free) > bound_ns:
                detail = f"{first.last_stable} for {max(free) / 1e9:.1f} s with nothing open"
                yield Broken(partition, detail)


def _tells(poll: Poll) -> bool:
    return poll.at_ns >= 0 and poll.last_stable >= 0 and poll.high_watermark >= 0


def _still(told: list[Poll]) -> Iterator[tuple[Poll, Poll]]:
    """The stretches in which it did not move, and there was more behind it."""
    start: Poll | None = None
    for before, after in pairwise(told):
        held = all(one.high_watermark > one.last_stable for one in (before, after))
        if held and before.last_stable == after.last_stable:
            start = start or before
            continue
        if start is not None:
            yield start, before
        start = None
    if start is not None:
        yield start, told[-1]


class Life(NamedTuple):
    start_ns: int
    end_ns: int


def _lives(history: History, partition: str) -> Iterator[Life]:
    """From when to when each transaction may have been open on a partition."""
    begun = {one.process: one for one in history.producer_inits if one.outcome is Outcome.OK}
    replaced = _replaced(history)
    for name in {send.transaction for send in history.sends[partition] if send.transaction}:
        parts = history.parts[name]
        start_ns = min(part.invoked_ns for part in parts)
        ended = [end.completed_ns for end in history.ends[name] if end.outcome is Outcome.OK]
        process = parts[0].process
        if ended:
            yield Life(start_ns, ended[-1])
        elif process in replaced:
            yield Life(start_ns, max(start_ns, replaced[process].completed_ns))
        else:
            last_ns = max(part.completed_ns for part in parts)
            timeout_ms = begun[process].timeout_ms if process in begun else TIMEOUT_MS
            yield Life(start_ns, last_ns + timeout_ms * 1_000_000)
