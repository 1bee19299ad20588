"""Where partitions go when a broker is drained or decommissioned.

Pure. A plan keeps each partition's replication factor, and never places two replicas of a
partition on one broker. Racks are kept apart where that is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ottla.cli.reassign.moves import Plan
from ottla.client.admin import BrokerInfo, Partition, Topic
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

SHOWN_MAX = 5
"""Partitions named in an error; the rest are counted."""


def without_leaders_on(topics: Iterable[Topic], broker: int) -> Plan:
    """The same replicas in another order: an in-sync replica elsewhere is preferred."""
    plan: Plan = {}
    for tp, partition in _on(topics, broker):
        others = [replica for replica in partition.replicas if replica != broker]
        in_sync = [replica for replica in others if replica in partition.isr]
        if in_sync and (partition.leader == broker or partition.replicas[0] == broker):
            rest = [replica for replica in others if replica != in_sync[0]]
            plan[tp] = (in_sync[0], *rest, broker)
    return plan


def without_replicas_on(
    topics: Sequence[Topic], broker: int, brokers: Sequence[BrokerInfo]
) -> Plan:
    """Each replica on this broker goes to the broker with the fewest, another rack if possible."""
    racks = {each.id: each.rack for each in brokers}
    targets = [each.id for each in brokers if each.id != broker]
    load = Counter(
        replica for topic in topics for each in topic.partitions for replica in each.replicas
    )
    plan: Plan = {}
    for tp, partition in _on(topics, broker):
        others = [replica for replica in partition.replicas if replica != broker]
        candidates = [target for target in targets if target not in others]
        if not candidates:
            raise UserError(
                f"{tp}: {len(partition.replicas)} replicas need {len(partition.replicas)} brokers, "
                f"but only {len(targets)} are left without broker {broker}; start another broker "
                "first, or lower the replication factor (ottla reassign plan -r)"
            )
        used = {racks.get(replica) for replica in others}
        chosen = min(candidates, key=lambda id: (_repeats_rack(racks, id, used), load[id], id))
        load[chosen] += 1
        load[broker] -= 1
        position = partition.replicas.index(broker)
        plan[tp] = (*partition.replicas[:position], chosen, *partition.replicas[position + 1 :])
    return plan


def check_safe(topics: Iterable[Topic], broker: int) -> None:
    """UserError if removing the broker now could lose data: partitions that are not whole."""
    offline = [tp for tp, partition in _on(topics, broker) if partition.leader is None]
    if offline:
        raise UserError(
            f"broker {broker} cannot be decommissioned: {_names(offline)} without a leader: "
            "nothing can be copied; see ottla cluster health"
        )
    behind = [
        tp
        for tp, partition in _on(topics, broker)
        if len(partition.replicas) > 1 and not set(partition.isr) - {broker}
    ]
    if behind:
        raise UserError(
            f"broker {broker} cannot be decommissioned: it has the only in-sync replica of "
            f"{_names(behind)}; wait until the others have caught up, see ottla cluster health"
        )


def _repeats_rack(racks: Mapping[int, str | None], id: int, used: set[str | None]) -> bool:
    rack = racks.get(id)
    return rack is not None and rack in used


def _on(topics: Iterable[Topic], broker: int) -> Iterator[tuple[TopicPartition, Partition]]:
    for topic in topics:
        for partition in topic.partitions:
            if broker in partition.replicas:
                yield TopicPartition(topic.name, partition.index), partition


def _names(partitions: Sequence[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:SHOWN_MAX]))
    more = len(partitions) - SHOWN_MAX
    return shown if more <= 0 else f"{shown} and {more} more"
