"""Which partitions of one broker the next fetch asks for. Pure.

Owns what is being asked for, so that nothing is asked for twice, and how many fetches may be under
way to the broker. One is enough until its replies are large. Then a second, over a connection of
its own, keeps both sides at work: while one reply is received the broker makes the other.

A fetch of partitions without new records waits at the broker, and until it is answered nothing else
can be asked for in its place. So none is made while the user has yet to read what was fetched of
other partitions: those may have more. Where there is a choice, partitions with more come first, and
those without wait all in one fetch: the other is there for whatever has more next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.model.ids import TopicPartition

LARGE_BYTES: Final = 1 << 20
"""A reply from which on a second fetch is worth its connection."""
MOST_FETCHES: Final = 2


class PartitionSelection:
    """The partitions of one broker, dealt out to the fetches that are under way to it."""

    def __init__(self, *, read_committed: bool = False) -> None:
        self.fetches = 1
        """How many may be under way."""
        self._read_committed = read_committed
        self._asked: set[TopicPartition] = set()

    def take(
        self, wanted: Sequence[AssignedPartition], *, unread: bool = False
    ) -> tuple[list[AssignedPartition], bool]:
        """What to ask for of all that is wanted, and whether it leaves something to another.

        `unread`: as much as is fetched ahead of the user waits to be read of some other partition.
        """
        free = [part for part in wanted if part.tp not in self._asked]
        free.sort(key=self._is_quiet)
        if free and self._is_quiet(free[0]):
            share = [] if unread else free
        else:
            share = free[: -(-len(wanted) // self.fetches)]
        self._asked.update(part.tp for part in share)
        return share, bool(share) and len(share) < len(free)

    def _is_quiet(self, part: AssignedPartition) -> bool:
        return part.is_at_end(self._read_committed)

    def give_back(self, asked: Iterable[TopicPartition]) -> None:
        """They were answered for, or will not be."""
        self._asked.difference_update(asked)

    def on_response(self, size: int, partitions: int) -> bool:
        """A reply of that size came for so many; whether there should be one more fetch now."""
        if size < LARGE_BYTES or partitions < 2 or self.fetches == MOST_FETCHES:
            return False
        self.fetches += 1
        return True

    def failed(self) -> None:
        """One fetch is no more: the others ask for its partitions."""
        self.fetches -= 1
