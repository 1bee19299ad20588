"""The events of a history, indexed for the checks.

Owns: what follows from events alone: which records must be durable, and how each transaction ended
as far as that can be known. Never: reports violations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cached_property
from typing import Any

from ottla.testing.history.events import (
    FINAL,
    Commit,
    Ended,
    Event,
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
)


class Fate(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    """Its producer got a success, or a read_committed consumer read part of it."""
    ABORTED = "aborted"
    """No commit was requested that may have succeeded."""
    UNKNOWN = "unknown"


class History:
    def __init__(self, events: Iterable[Event]) -> None:
        self.sends: dict[str, list[Send]] = defaultdict(list)
        self.polls: dict[str, list[Poll]] = defaultdict(list)
        self.retention: dict[str, Retention] = {}
        self.parts: dict[str, list[Send]] = defaultdict(list)
        """The records of each transaction."""
        self.ends: dict[str, list[Ended]] = defaultdict(list)
        self.producer_inits: list[ProducerInit] = []
        self.commits: list[Commit] = []
        self.offset_reads: list[OffsetRead] = []
        self.resets: list[Reset] = []
        self.owns: list[Owns] = []
        self.pipes: list[Pipe] = []
        self.leads: list[Leads] = []
        self._final: dict[tuple[str, bool], dict[int, str]] = {}
        lists: dict[type[Event], list[Any]] = {
            ProducerInit: self.producer_inits,
            Commit: self.commits,
            OffsetRead: self.offset_reads,
            Reset: self.resets,
            Owns: self.owns,
            Pipe: self.pipes,
            Leads: self.leads,
        }
        for event in events:
            if type(event) in lists:
                lists[type(event)].append(event)
            else:
                self._arrange(event)

    def _arrange(self, event: Event) -> None:
        match event:
            case Send():
                self.sends[event.partition].append(event)
                if event.transaction:
                    self.parts[event.transaction].append(event)
            case Poll():
                self.polls[event.partition].append(event)
                if event.process == FINAL:
                    records = self._final.setdefault((event.partition, event.committed), {})
                    records.update(event.records)
            case Retention():
                self.retention[event.partition] = event
            case Ended():
                self.ends[event.transaction].append(event)

    def partitions(self) -> list[str]:
        return sorted({*self.sends, *self.polls})

    # What was read

    def records_read(self, partition: str) -> Iterator[tuple[int, str]]:
        for poll in self.polls[partition]:
            yield from poll.records

    def final(self, partition: str, *, committed: bool = False) -> dict[int, str]:
        return self._final.get((partition, committed), {})

    def was_read_at_last(self, partition: str, *, committed: bool) -> bool:
        """Whether the final reader read this partition, even if it was empty."""
        return (partition, committed) in self._final

    @cached_property
    def held_back(self) -> dict[str, set[str]]:
        """By partition: values sent that the final read_committed reader did not see.

        Empty where there was no such reader.
        """
        return {
            partition: {send.value for send in sends}.difference(
                self.final(partition, committed=True).values()
            )
            for partition, sends in self.sends.items()
            if self.was_read_at_last(partition, committed=True)
        }

    # What groups committed

    @cached_property
    def commits_of(self) -> dict[str, list[Commit]]:
        """By transaction."""
        commits: dict[str, list[Commit]] = defaultdict(list)
        for commit in self.commits:
            if commit.transaction:
                commits[commit.transaction].append(commit)
        return commits

    @cached_property
    def last_offset_reads(self) -> dict[tuple[str, str], OffsetRead]:
        """By group and partition."""
        return {(look.group, look.partition): look for look in self.offset_reads}

    # What must be there

    def durable_sends(self, partition: str) -> Iterator[Send]:
        """The acknowledged records that every read must see."""
        retention = self.retention.get(partition, Retention(partition))
        for send in self.sends[partition]:
            is_retained = send.offset < 0 or send.offset >= retention.start
            if send.outcome is Outcome.OK and is_retained and not retention.compacted:
                yield send

    # How transactions ended

    def fate_of(self, send: Send) -> Fate:
        """A record outside transactions counts as committed."""
        return self.fates[send.transaction] if send.transaction else Fate.COMMITTED

    @cached_property
    def fates(self) -> dict[str, Fate]:
        observed = self.observed
        return {name: self._fate(name, observed) for name in {*self.parts, *self.ends}}

    def _fate(self, name: str, observed: frozenset[str]) -> Fate:
        acknowledged = [end.commit for end in self.ends[name] if end.outcome is Outcome.OK]
        if acknowledged:
            return Fate.COMMITTED if acknowledged[-1] else Fate.ABORTED
        if not any(end.commit and end.outcome is Outcome.UNKNOWN for end in self.ends[name]):
            return Fate.ABORTED
        return Fate.COMMITTED if name in observed else Fate.UNKNOWN

    @cached_property
    def observed(self) -> frozenset[str]:
        """The transactions of which a read_committed consumer read a record."""
        return frozenset(
            name
            for name, parts in self.parts.items()
            if any(part.value in self._committed_values[part.partition] for part in parts)
        )

    @cached_property
    def _committed_values(self) -> dict[str, set[str]]:
        values: dict[str, set[str]] = defaultdict(set)
        for partition, polls in self.polls.items():
            for poll in polls:
                if poll.committed:
                    values[partition].update(value for _, value in poll.records)
        return values
