"""What must hold once every fault was repaired: whole in-sync sets and equal logs.

Reads the metadata store's tree and the files on the simulated disks; asks no broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from ottla.store import paths
from ottla.store.memory import Ensemble
from ottla.store.nodes import ControllerNode, StateNode, TopicNode
from ottla.store.port import Delete
from ottla.testing.history import Violation
from ottla.testing.history.replicas import differences, log_end
from tests.sim.cluster.node import SimNode

IS_LOG: Final = re.compile(r"[^.]+-\d+")
"""The directory of a log that is in use."""
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

    def controller_epoch(self) -> int:
        entry = self._ensemble.tree.find(paths.CONTROLLER_EPOCH)
        return 0 if entry is None else int(entry.node().data)

    def delete_controller(self) -> None:
        """As an operator does who wants another one elected."""
        if self._ensemble.tree.find(paths.CONTROLLER) is not None:
            self._ensemble.write([Delete(paths.CONTROLLER)], session=0)

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
                if topic.adding.get(partition) or topic.removing.get(partition):
                    left.append(f"{name}-{partition} is being reassigned: {topic}")
                state = states.get(TopicPartition(name, partition))
                if state is None or state.leader < 0 or set(state.isr) != set(replicas):
                    left.append(f"{name}-{partition} has replicas {replicas} and is {state}")
        return left

    def _children(self, path: str) -> list[str]:
        if self._ensemble.tree.find(path) is None:
            return []
        return self._ensemble.tree.children(path)


def different_replicas(
    nodes: Mapping[int, SimNode], view: StoreView, served: Mapping[TopicPartition, range]
) -> Iterator[Violation]:
    """Replicas whose logs differ where they are served: from the log start to the high watermark.

    The others are compacted: they are compared by record, as far as each replica has it.
    """
    for name, topic in view.topics().items():
        for partition, replicas in topic.partitions.items():
            tp = TopicPartition(name, partition)
            found = {int(broker): log_of(nodes[broker], tp) for broker in replicas}
            offsets = served.get(tp)
            for difference in differences(
                {broker: replica.content for broker, replica in found.items()},
                None if offsets is None else offsets.stop,
                start=0 if offsets is None else offsets.start,
                compacted=name in COMPACTED or offsets is None,
                bases={broker: replica.base for broker, replica in found.items()},
            ):
                yield Violation("replicas", str(tp), difference)


class ReplicaLog(NamedTuple):
    content: bytes
    """Of every segment, in the order of offsets."""
    base: int
    """Where the last segment begins."""

    @property
    def end(self) -> int:
        return max(self.base, log_end(self.content))


def log_of(node: SimNode, tp: TopicPartition) -> ReplicaLog:
    for parent in node.data_dirs:
        directory = parent / str(tp)
        if node.disk.exists(directory):
            segments = [name for name in node.disk.list(directory) if name.endswith(".log")]
            content = b"".join(node.disk.read(directory / name) for name in segments)
            return ReplicaLog(content, int(segments[-1].removesuffix(".log")))
    return ReplicaLog(b"", 0)


def strays(nodes: Mapping[int, SimNode], view: StoreView) -> list[str]:
    """Logs that no broker should have: of deleted topics, or of replicas that are elsewhere now."""
    replicas = {
        str(TopicPartition(name, partition)): brokers
        for name, topic in view.topics().items()
        for partition, brokers in topic.partitions.items()
    }
    return [
        f"{directory / name} on broker {broker}"
        for broker, node in nodes.items()
        for directory in node.data_dirs
        for name in node.disk.list(directory)
        if IS_LOG.fullmatch(name) and broker not in replicas.get(name, ())
    ]
