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
        retention = history.retention.get(partition, Retention(partition))
        lasts = not retention.compacted and (part.offset < 0 or part.offset >= retention.start)
        if part.outcome is Outcome.FAIL:
            yield Broken(partition, f"{name} was committed without {part.value}")
        elif lasts and part.value in history.held_back.get(partition, ()):
            yield Broken(partition, f"{name} counts, and {part.value} of it is not there")


def _missing_offsets(history: History, name: str) -> Iterator[Broken]:
    """Offsets only rise, so that one that is not reached at last was never committed."""
    for commit in history.commits_of.get(name, ()):
        look = history.last_offset_reads.get((commit.group, commit.partition))
        if look is None or look.invoked_ns < commit.completed_ns:
            continue
        offset_read = look.offset
        if offset_read < commit.offset and not _was_reset(history, commit):
            detail = (
                f"{name} counts, and {commit.group} stands at {offset_read}, not at {commit.offset}"
            )
            yield Broken(commit.partition, detail)


def _was_reset(history: History, commit: Commit) -> bool:
    return any(
        (reset.group, reset.partition) == (commit.group, commit.partition)
        and reset.completed_ns >= commit.invoked_ns
        for reset in history.resets
    )


def zombie(history: History) -> Iterator[Broken]:
    """Something succeeded for a process that a newer one had replaced before it asked."""
    replaced = _successors(history)
    for success in _successes(history):
        successor = replaced.get(success.process)
        if successor is not None and success.invoked_ns > successor.completed_ns:
            detail = (
                f"{_what(success)} of {success.process} succeeded after "
                f"{successor.process} had begun"
            )
            yield Broken(successor.transactional_id, detail)


def _successors(history: History) -> dict[str, ProducerInit]:
    """Who came after each process, as the producer of its transactional id."""
    acknowledged = [
        producer for producer in history.producer_inits if producer.outcome is Outcome.OK
    ]
    by_time = sorted(acknowledged, key=lambda producer: producer.completed_ns)
    successors: dict[str, ProducerInit] = {}
    for older in by_time:
        for newer in by_time:
            if (
                newer.transactional_id == older.transactional_id
                and newer.process != older.process
                and newer.invoked_ns > older.completed_ns
            ):
                successors.setdefault(older.process, newer)
    return successors


def _successes(history: History) -> Iterator[Send | Ended | Commit]:
    for sends in history.parts.values():
        yield from (send for send in sends if send.outcome is Outcome.OK)
    for ends in history.ends.values():
        yield from (end for end in ends if end.outcome is Outcome.OK)
    for commit in history.commits:
        if commit.transaction and commit.outcome is Outcome.OK:
            yield commit


def _what(event: Send | Ended | Commit) -> str:
    match event:
        case Send():
            return f"writing {event.value}"
        case Ended():
            return f"ending {event.transaction}"
        case Commit():
            return f"committing {event.offset} of {event.partition}"


def stuck_lso(history: History, bound_ns: int = LSO_BOUND_NS) -> Iterator[Broken]:
    """The last stable offset stood still beyond its bound, and no transaction was open."""
    for partition, polls in sorted(history.polls.items()):
        polls_with_lso = sorted(
            (poll for poll in polls if _tells(poll)), key=lambda poll: poll.at_ns
        )
        lives = sorted(_lives(history, partition))
        for first, last in _still(polls_with_lso):
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


def _still(polls: list[Poll]) -> Iterator[tuple[Poll, Poll]]:
    """The stretches in which it did not move, and there was more behind it."""
    start: Poll | None = None
    for before, after in pairwise(polls):
        is_behind = all(poll.high_watermark > poll.last_stable for poll in (before, after))
        if is_behind and before.last_stable == after.last_stable:
            start = start or before
            continue
        if start is not None:
            yield start, before
        start = None
    if start is not None:
        yield start, polls[-1]


class Life(NamedTuple):
    start_ns: int
    end_ns: int


def _lives(history: History, partition: str) -> Iterator[Life]:
    """From when to when each transaction may have been open on a partition."""
    begun = {one.process: one for one in history.producer_inits if one.outcome is Outcome.OK}
    replaced = _successors(history)
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
