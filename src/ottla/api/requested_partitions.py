"""The partitions that a request names, by topic, read in slices.

Sets of numbers by topic, not a set of `TopicPartition`s: they are built thirty times as fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ottla.delay.slices import PLAIN, Slices, parts_of

TOPIC_COST: Final = 10
"""What a topic costs, in partitions."""


async def numbers_by_topic(topics: Iterable[tuple[str, Sequence[int]]]) -> dict[str, set[int]]:
    """The numbers of each topic's partitions; a topic may be named more than once."""
    numbers: dict[str, set[int]] = {}
    slices = Slices(PLAIN)
    for name, indexes in topics:
        await slices.took(TOPIC_COST)
        of_topic = numbers.setdefault(name, set())
        for some in parts_of(indexes, PLAIN):
            await slices.took(len(some))
            of_topic.update(some)
    return numbers
