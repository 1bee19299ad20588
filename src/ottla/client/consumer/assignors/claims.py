"""Who holds what already, when several members may say that they do.

Pure. A member that was away for a rebalance still claims what it had then; whoever got it since
claims it from a later generation, and the later one is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.consumer.assignors.user_data import OwnedPartitions
from ottla.model.ids import TopicPartition


class Claim(NamedTuple):
    generation: int
    member: str | None
    """None: two members claim it from the same generation, and neither can be believed."""


def settle(
    held: Mapping[str, OwnedPartitions],
    topics: Mapping[str, frozenset[str]],
    partitions: Mapping[str, int],
) -> dict[TopicPartition, str]:
    """The holder of each partition that still exists and that its holder still wants."""
    claims: dict[TopicPartition, Claim] = {}
    for member, (claimed, generation) in held.items():
        for partition in set(claimed):
            if not 0 <= partition.partition < partitions.get(partition.topic, 0):
                continue
            rival = claims.get(partition)
            if rival is None or generation > rival.generation:
                claims[partition] = Claim(generation, member)
            elif generation == rival.generation:
                claims[partition] = Claim(generation, None)
    return {
        partition: claim.member
        for partition, claim in claims.items()
        if claim.member is not None and partition.topic in topics[claim.member]
    }
