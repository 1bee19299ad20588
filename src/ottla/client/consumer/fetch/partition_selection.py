"""Which partitions of one broker the next fetch contains. Pure.

Owns the set of partitions in flight, so that none is requested twice, and how many fetches may be
in flight to the broker. One is enough until its responses are large. Then a second one, over its
own connection, keeps both sides busy: while one response is received the broker builds the other.

A fetch of partitions without new records waits at the broker, and blocks its connection until it is
answered. So none is sent while the user has not read the buffered records of other partitions:
those may have more. Partitions with more records come first, and those without wait together in one
fetch: the other one stays free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.model.ids import TopicPartition

LARGE_BYTES: Final = 1 << 20
"""The size of a response from which on a second fetch is worth its connection."""
MOST_FETCHES: Final = 2


class PartitionSelection:
    """The partitions of one broker, distributed over the fetches in flight to it."""

    def __init__(self, *, read_committed: bool = False) -> None:
        self.fetches = 1
        """How many may be in flight."""
        self._read_committed = read_committed
        self._in_flight: set[TopicPartition] = set()

    def take(
        self, fetchable: Sequence[AssignedPartition], *, unread: bool = False
    ) -> tuple[list[AssignedPartition], bool]:
        """The partitions of the next fetch, and whether some are left for another fetch.

        `unread`: the buffer of some other partition is full.
        """
        free = [part for part in fetchable if part.tp not in self._in_flight]
        free.sort(key=self._is_at_end)
        if free and self._is_at_end(free[0]):
            share = [] if unread else free
        else:
            share = free[: -(-len(fetchable) // self.fetches)]
        self._in_flight.update(part.tp for part in share)
        return share, bool(share) and len(share) < len(free)

    def _is_at_end(self, part: AssignedPartition) -> bool:
        return part.is_at_end(self._read_committed)

    def give_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Their fetch was answered, or failed."""
        self._in_flight.difference_update(partitions)

    def on_response(self, size: int, partitions: int) -> bool:
        """Handle the size of a response for so many partitions; whether to add a fetch."""
        if size < LARGE_BYTES or partitions < 2 or self.fetches == MOST_FETCHES:
            return False
        self.fetches += 1
        return True

    def on_task_ended(self) -> None:
        """One fetch task has ended: the others fetch its partitions."""
        self.fetches -= 1
