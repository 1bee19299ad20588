"""Replica placement for new partitions.

Pure: two random numbers are handed in. Leaders are assigned round-robin from a random broker;
followers come after their leader at a distance that grows by one in each round, so that the
partitions led by one broker have their replicas on different others. With racks, the brokers are
ordered so that racks alternate, and a partition uses every rack once before any twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, zip_longest
from typing import Final, NamedTuple

from ottla.controller.state import BrokerState, Replicas
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId


class PlacementRandomness(NamedTuple):
    """Two random numbers of any size: the first leader, and the first distance of followers."""

    start: int
    shift: int


NO_RANDOMNESS: Final = PlacementRandomness(0, 0)


def place(
    brokers: Mapping[BrokerId, BrokerState],
    numbers: range,
    replication_factor: int,
    randomness: PlacementRandomness,
) -> dict[int, Replicas]:
    """Replicas for the partitions `numbers` of one topic."""
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.invalid_replication_factor,
            f"Unable to replicate the partition {replication_factor} time(s): "
            f"only {len(brokers)} broker(s) are registered.",
        )
    racks = _racks(brokers)
    ordered = _alternating(racks)
    round_size = len(ordered)
    return {
        number: _replicas_from(
            ordered,
            racks,
            randomness.start + number,
            randomness.shift + number // round_size,
            replication_factor,
        )
        for number in numbers
    }


def continued_from(brokers: Mapping[BrokerId, BrokerState], first: BrokerId) -> PlacementRandomness:
    """Go on as if the topic, whose first leader is `first`, had been created with more
    partitions."""
    ordered = _alternating(_racks(brokers))
    start = ordered.index(first) if first in ordered else sum(id < first for id in ordered)
    return PlacementRandomness(start, start)


def _racks(brokers: Mapping[BrokerId, BrokerState]) -> dict[BrokerId, str | None]:
    """Racks are used only if every broker has one."""
    racks = {broker.id: broker.rack for broker in brokers.values()}
    return dict.fromkeys(racks, "") if None in racks.values() else racks


def _replicas_from(
    ordered: Sequence[BrokerId],
    racks: Mapping[BrokerId, str | None],
    first: int,
    shift: int,
    replication_factor: int,
) -> Replicas:
    """The replicas of a partition whose leader is at position `first`."""
    rack_count = len(set(racks.values()))
    leader = ordered[first % len(ordered)]
    chosen, used = [leader], {racks[leader]}
    for follower in count(shift * rack_count):
        if len(chosen) == replication_factor:
            break
        broker = ordered[(first + 1 + follower % (len(ordered) - 1)) % len(ordered)]
        fresh_rack = racks[broker] not in used or len(used) == rack_count
        if broker not in chosen and fresh_rack:
            chosen.append(broker)
            used.add(racks[broker])
    return tuple(chosen)


def _alternating(racks: Mapping[BrokerId, str | None]) -> list[BrokerId]:
    """Brokers sorted by id within their rack, with alternating racks."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    columns = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for column in columns for broker in column if broker is not None]
