"""What holds for groups: one reader a generation, offsets that only rise, work done once.

One function for each promise; each yields where it was broken, and how in words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

from ottla.testing.history.arrangement import Fate, History
from ottla.testing.history.events import Commit, Outcome
from ottla.testing.history.transactions import Broken


def one_reader(history: History) -> Iterator[Broken]:
    """In one generation of a group each record goes to exactly one member."""
    for partition, polls in sorted(history.polls.items()):
        readers: dict[tuple[str, int, int], set[str]] = defaultdict(set)
        for poll in polls:
            if poll.group and poll.generation >= 0:
                for offset, _ in poll.records:
                    readers[poll.group, poll.generation, offset].add(poll.process)
        for (group, generation, offset), processes in sorted(readers.items()):
            if len(processes) > 1:
                detail = f"{offset} went to {sorted(processes)} in {group}'s {generation}"
                yield Broken(partition, detail)


def one_owner(history: History) -> Iterator[Broken]:
    """No member is given a partition that another one of its group still has."""
    owners: dict[tuple[str, str], str] = {}
    # What happened at one moment is taken as giving up first.
    for event in sorted(history.owns, key=lambda event: (event.at_ns, event.gained)):
        key = (event.group, event.partition)
        owner = owners.get(key, event.process)
        if owner == event.process:
            owners[key] = event.process
            if not event.gained:
                del owners[key]
        elif event.gained:
            yield Broken(event.partition, f"{event.process} was assigned what {owner} still owned")


def stale_commit(history: History) -> Iterator[Broken]:
    """A member of an older generation committed after somebody had met a newer one."""
    met: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for polls in history.polls.values():
        for poll in polls:
            if poll.generation >= 0 and poll.at_ns >= 0:
                met[poll.group].append((poll.at_ns, poll.generation))
    for commit in history.commits:
        if commit.outcome is Outcome.OK and commit.generation >= 0:
            met[commit.group].append((commit.completed_ns, commit.generation))
    for commit in history.commits:
        if commit.outcome is not Outcome.OK or commit.generation < 0:
            continue
        newest = max((g for at, g in met[commit.group] if at < commit.invoked_ns), default=-1)
        if newest > commit.generation:
            detail = f"{commit.process} committed in {commit.generation}, after {newest} had begun"
            yield Broken(commit.partition, detail)


def offset_regression(history: History) -> Iterator[Broken]:
    """A group's committed offset fell, though nobody had reset it."""
    offsets: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for look in history.offset_reads:
        offsets[look.group, look.partition].append((look.completed_ns, look.offset))
    for commit in history.commits:
        at_ns = _counts_from(history, commit)
        if at_ns is not None:
            offsets[commit.group, commit.partition].append((at_ns, commit.offset))
    resets = {(reset.group, reset.partition): -1 for reset in history.resets}
    for reset in history.resets:
        key = (reset.group, reset.partition)
        resets[key] = max(resets[key], reset.completed_ns)
    highest = {
        key: _HighestBefore([known for known in found if known[0] >= resets.get(key, -1)])
        for key, found in offsets.items()
    }
    for look in history.offset_reads:
        key = (look.group, look.partition)
        before = highest[key].at(look.invoked_ns)
        if look.invoked_ns > resets.get(key, -1) and look.offset < before:
            detail = f"{look.group} had committed {before}, and later {look.offset}"
            yield Broken(look.partition, detail)


class _HighestBefore:
    """The highest of offsets that were known before a time."""

    def __init__(self, known: list[tuple[int, int]]) -> None:
        known.sort()
        self._times = [time_ns for time_ns, _ in known]
        self._highest = list(accumulate((offset for _, offset in known), max))

    def at(self, time_ns: int) -> int:
        count = bisect_left(self._times, time_ns)
        return self._highest[count - 1] if count else -1


def _counts_from(history: History, commit: Commit) -> int | None:
    """When a commit is known to count; None when it is not."""
    if not commit.transaction:
        return commit.completed_ns if commit.outcome is Outcome.OK else None
    if history.fates.get(commit.transaction) is not Fate.COMMITTED:
        return None
    ends = history.ends[commit.transaction]
    return max((end.completed_ns for end in ends if end.outcome is Outcome.OK), default=None)


def exactly_once(history: History) -> Iterator[Broken]:
    """What came out of a pipe is what went in, as often and in order."""
    for pipe in history.pipes:
        sources = _committed_values(history, pipe.source)
        sinks = {
            partition: [value.partition("@")[0] for value in values]
            for partition, values in _committed_values(history, pipe.sink).items()
        }
        sent = Counter(value for values in sources.values() for value in values)
        received = Counter(value for values in sinks.values() for value in values)
        for value in sorted({*sent, *received}):
            if sent[value] != received[value]:
                detail = f"{value} went in {sent[value]} times, came out {received[value]} times"
                yield Broken(pipe.sink, detail)
        for partition, values in sorted(sources.items()):
            place = {value: index for index, value in enumerate(values)}
            for sink, out in sorted(sinks.items()):
                of_ours = [place[value] for value in out if value in place]
                if of_ours != sorted(of_ours):
                    yield Broken(sink, f"the records of {partition} came out of order")


def _committed_values(history: History, topic: str) -> dict[str, list[str]]:
    """The values of a topic's partitions as the last reader of committed data found them."""
    return {
        partition: [value for _, value in sorted(history.final(partition, committed=True).items())]
        for partition in history.partitions()
        if partition.rpartition("-")[0] == topic
    }
