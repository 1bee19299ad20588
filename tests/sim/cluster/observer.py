"""What goes on inside the brokers, as it happens: who leads, and up to where.

Looks into the brokers, which clients cannot: it wraps the methods of a hosted partition that
change these, for the time of one simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.log.log import Appended
from ottla.replica.leader import LeaderAssignment
from ottla.replica.partition import HostedPartition
from ottla.testing.history import Leads
from tests.sim.book import Book
from tests.sim.cluster.moments import WRITTEN, Moments, Subject


@contextmanager
def observed(book: Book, moments: Moments) -> Iterator[None]:
    """Record every leadership that begins, and every high watermark of a leader that moves."""
    lead, advance, append = HostedPartition.lead, HostedPartition.advance, HostedPartition.append
    topics: dict[str, list[object]] = {}

    def record(partition: HostedPartition, log_end: int = -1, log_start: int = -1) -> None:
        if partition.leadership is not None:
            book.write(
                Leads(
                    partition._environment.broker_id,
                    name_of(partition, topics),
                    partition.leader_epoch,
                    partition.log.high_watermark,
                    book.now_ns,
                    log_end,
                    log_start,
                )
            )

    def observed_lead(self: HostedPartition, assigned: LeaderAssignment) -> None:
        lead(self, assigned)
        record(self, self.log.end_offset, self.log.start_offset)

    def observed_advance(self: HostedPartition) -> bool:
        has_moved = advance(self)
        if has_moved:
            record(self)
        return has_moved

    def observed_append(self: HostedPartition, *what: Any) -> Appended:
        appended = append(self, *what)
        moment = WRITTEN.get(self.key.topic)
        if moment is not None:
            moments.report(moment, Subject(self.key, self._environment.broker_id))
        return appended

    HostedPartition.lead = observed_lead  # type: ignore[method-assign]
    HostedPartition.advance = observed_advance  # type: ignore[method-assign]
    HostedPartition.append = observed_append  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        HostedPartition.lead = lead  # type: ignore[method-assign]
        HostedPartition.advance = advance  # type: ignore[method-assign]
        HostedPartition.append = append  # type: ignore[method-assign]


def name_of(partition: HostedPartition, topics: dict[str, list[object]]) -> str:
    """With a number if it belongs to a later topic of the same name."""
    ids = topics.setdefault(partition.key.topic, [])
    if partition.log.topic_id not in ids:
        ids.append(partition.log.topic_id)
    number = ids.index(partition.log.topic_id)
    return f"{partition.key} ({number})" if number else str(partition.key)
