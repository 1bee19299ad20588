"""Where the replicas of new partitions go.

Pure: the two throws of the dice come in as numbers. Leaders go round the brokers from a random
start; followers come after their leader at a distance that grows by one each time round, so that
the partitions led by one broker have their copies on different others. With racks, the brokers
are lined up so that racks alternate, and a partition takes every rack once before any twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, zip_longest
from typing import Final, NamedTuple

from ottla.controller.state import BrokerState, Replicas
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId


class PlacementRandomness(NamedTuple):
    """Two throws: where leaders start, and how far off followers start (any size; modulo taken)."""

    start: int
    shift: int


NOT_ROLLED: Final = PlacementRandomness(0, 0)


def place(
    brokers: Mapping[BrokerId, BrokerState],
    numbers: range,
    replication_factor: int,
    roll: PlacementRandomness,
) -> dict[int, Replicas]:
    """Replicas for the partitions `numbers` of one topic."""
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.invalid_replication_factor,
            f"Unable to replicate the partition {replication_factor} time(s): "
            f"only {len(brokers)} broker(s) are registered.",
        )
    racks = {broker.id: broker.rack for broker in brokers.values()}
    if None in racks.values():  # racks count only when every broker tells its own
        racks = dict.fromkeys(racks, "")
    line = _alternating(racks)
    lap = len(line)
    return {
        number: _around(
            line, racks, roll.start + number, roll.shift + number // lap, replication_factor
        )
        for number in numbers
    }


def _around(
    line: Sequence[BrokerId],
    racks: Mapping[BrokerId, str | None],
    first: int,
    shift: int,
    needed: int,
) -> Replicas:
    """The replicas of a partition led from position `first` of the line."""
    rack_count = len(set(racks.values()))
    leader = line[first % len(line)]
    chosen, used = [leader], {racks[leader]}
    for follower in count(shift * rack_count):
        if len(chosen) == needed:
            break
        broker = line[(first + 1 + follower % (len(line) - 1)) % len(line)]
        fresh_rack = racks[broker] not in used or len(used) == rack_count
        if broker not in chosen and fresh_rack:
            chosen.append(broker)
            used.add(racks[broker])
    return tuple(chosen)


def _alternating(racks: Mapping[BrokerId, str | None]) -> list[BrokerId]:
    """Brokers by id within a rack, one rack after the other."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    columns = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for column in columns for broker in column if broker is not None]
