"""Which broker leads which partition in which epoch, and its high watermark, as it happens.

Looks into the brokers, which clients cannot: it wraps the two methods of a hosted partition that
change these, for the time of one simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.replica.leader import LeaderAssignment
from ottla.replica.partition import HostedPartition
from ottla.testing.history import Leads
from tests.sim.book import Book


@contextmanager
def observed(book: Book) -> Iterator[None]:
    """Record every leadership that begins, and every high watermark of a leader that moves."""
    lead, advance = HostedPartition.lead, HostedPartition.advance

    def record(partition: HostedPartition) -> None:
        if partition.leadership is not None:
            book.write(
                Leads(
                    partition._environment.broker_id,
                    str(partition.key),
                    partition.leader_epoch,
                    partition.log.high_watermark,
                    book.now_ns,
                )
            )

    def observed_lead(self: HostedPartition, assigned: LeaderAssignment) -> None:
        lead(self, assigned)
        record(self)

    def observed_advance(self: HostedPartition) -> bool:
        has_moved = advance(self)
        if has_moved:
            record(self)
        return has_moved

    HostedPartition.lead = observed_lead  # type: ignore[method-assign]
    HostedPartition.advance = observed_advance  # type: ignore[method-assign]
    try:
        yield
    finally:
        HostedPartition.lead = lead  # type: ignore[method-assign]
        HostedPartition.advance = advance  # type: ignore[method-assign]
