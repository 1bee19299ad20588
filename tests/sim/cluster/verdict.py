"""What must hold once every fault was repaired: whole in-sync sets and equal logs.

Reads the metadata store's tree and the files on the simulated disks; asks no broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from ottla.store import paths
from ottla.store.memory import Ensemble
from ottla.store.nodes import ControllerNode, StateNode, TopicNode
from ottla.testing.history import Violation
from ottla.testing.history.replicas import differences
from tests.sim.broker import DATA
from tests.sim.cluster.node import SimNode

COMPACTED: Final = {CONSUMER_OFFSETS, TRANSACTION_STATE}


class StoreView:
    """The cluster's state, as the metadata store has it."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble

    def registered(self) -> list[int]:
        return sorted(int(name) for name in self._children(paths.BROKER_IDS))

    def controller(self) -> int:
        entry = self._ensemble.tree.find(paths.CONTROLLER)
        return -1 if entry is None else ControllerNode.decode(entry.node().data).broker

    def topics(self) -> dict[str, TopicNode]:
        found = {}
        for name in self._children(paths.TOPICS):
            entry = self._ensemble.tree.find(paths.topic(name))
            if entry is not None:
                found[name] = TopicNode.decode(entry.node().data)
        return found

    def states(self) -> dict[TopicPartition, StateNode]:
        found = {}
        for name, topic in self.topics().items():
            for partition in topic.partitions:
                tp = TopicPartition(name, partition)
                entry = self._ensemble.tree.find(paths.partition_state(tp))
                if entry is not None:
                    found[tp] = StateNode.decode(entry.node().data)
        return found

    def out_of_sync(self, brokers: int) -> list[str]:
        """What keeps the cluster from being whole; empty: every replica is in sync."""
        left = []
        if len(self.registered()) < brokers:
            left.append(f"only {self.registered()} are registered")
        states = self.states()
        for name, topic in self.topics().items():
            for partition, replicas in topic.partitions.items():
                state = states.get(TopicPartition(name, partition))
                if state is None or state.leader < 0 or set(state.isr) != set(replicas):
                    left.append(f"{name}-{partition} has replicas {replicas} and is {state}")
        return left

    def _children(self, path: str) -> list[str]:
        if self._ensemble.tree.find(path) is None:
            return []
        return self._ensemble.tree.children(path)


def different_replicas(
    nodes: Mapping[int, SimNode], view: StoreView, ends: Mapping[TopicPartition, int]
) -> Iterator[Violation]:
    """Replicas whose logs differ below the high watermark."""
    for name, topic in view.topics().items():
        for partition, replicas in topic.partitions.items():
            tp = TopicPartition(name, partition)
            logs = {int(broker): log_of(nodes[broker], tp) for broker in replicas}
            compacted = name in COMPACTED or tp not in ends
            for difference in differences(logs, ends.get(tp), compacted=compacted):
                yield Violation("replicas", str(tp), difference)


def log_of(node: SimNode, tp: TopicPartition) -> bytes:
    """Every segment of a replica, in the order of offsets."""
    directory = Path(DATA) / str(tp)
    segments = [name for name in node.disk.list(directory) if name.endswith(".log")]
    return b"".join(node.disk.read(directory / name) for name in segments)
