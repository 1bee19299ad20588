"""Reads the store for the controller: what is there becomes an event.

Owns which nodes are read for which event, and which paths are being watched. A watch is set in the
same breath as the reading, so nothing is missed between; a path that is still watched is not
watched twice. Never decides anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TypeVar

from ottla.controller.events import (
    DeletionsFound,
    Elected,
    ElectionKind,
    ElectionRequested,
    Event,
    LiveBrokersChanged,
    LogDirFailuresFound,
    PartitionsReloaded,
    ReassignmentRequested,
    StatesChanged,
    StatesReloaded,
    TopicsReloaded,
)
from ottla.controller.runtime.controller_election import ControllerTerm
from ottla.controller.state import (
    BrokerState,
    ControllerState,
    Leadership,
    PartitionAssignment,
    TopicAssignment,
)
from ottla.controller.topics import UNCLEAN
from ottla.model.ids import (
    NO_BROKER,
    NO_EPOCH,
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    TopicId,
    TopicPartition,
)
from ottla.store import paths
from ottla.store.changes import (
    BrokerChanged,
    BrokersChanged,
    Change,
    DeletionNodesChanged,
    IsrsChanged,
    LogDirsFailed,
    PartitionsChanged,
    PreferredElectionNodeChanged,
    ReassignmentNodeChanged,
    TopicsChanged,
    Watcher,
)
from ottla.store.nodes import (
    BadNode,
    BrokerNode,
    ConfigNode,
    ControllerNode,
    LogDirEventNode,
    PartitionsNode,
    ReassignmentNode,
    StateNode,
    TopicNode,
    id_text,
)
from ottla.store.port import Node, Store

log = logging.getLogger(__name__)

Read = TypeVar("Read")


class StoreReader:
    def __init__(self, store: Store, tell: Callable[[Change], None], dice: Random) -> None:
        self._store = store
        self._tell = tell
        self._dice = dice
        self._watched: set[str] = set()

    def forget_watches(self) -> None:
        """The session they belonged to is over."""
        self._watched.clear()

    async def controller(self) -> BrokerId | None:
        """Who is controller; a node that cannot be read counts as none."""
        node = _read(ControllerNode.decode, await self._data(paths.CONTROLLER))
        return None if node is None else node.broker

    async def everything(self, term: ControllerTerm) -> Elected:
        """All that a new controller must know, watched from here on."""
        await self._data(paths.PREFERRED_ELECTION)
        await self._data(paths.REASSIGN_PARTITIONS)
        isr_changes = await self._children(paths.ISR_CHANGES)
        log_dirs = await self._children(paths.LOG_DIR_EVENTS)
        deletions = await self._children(paths.DELETE_TOPICS)
        brokers = await self._brokers()
        topics = await self._topics(await self._children(paths.TOPICS))
        return Elected(
            term.epoch,
            term.version,
            brokers.brokers,
            topics,
            deletions=frozenset(deletions),
            unclean=await self._unclean(topics),
            notifications=(
                *(f"{paths.ISR_CHANGES}/{name}" for name in isr_changes),
                *(f"{paths.LOG_DIR_EVENTS}/{name}" for name in log_dirs),
            ),
            ids=self._ids(topics),
        )

    async def event(self, change: Change, state: ControllerState) -> Event | None:
        """What a change amounts to, once the store has been read."""
        match change:
            case BrokersChanged() | BrokerChanged():
                return await self._brokers()
            case TopicsChanged():
                return await self.topics(state.topics)
            case PartitionsChanged(topic) if topic in state.topics:
                return await self.partitions(topic)
            case DeletionNodesChanged():
                return await self._deletions()
            case IsrsChanged():
                return await self._isr_changes()
            case LogDirsFailed():
                return await self._log_dirs()
            case PreferredElectionNodeChanged():
                return await self._preferred_election()
            case ReassignmentNodeChanged():
                return await self._reassignment()
            case _:
                return None

    async def _brokers(self) -> LiveBrokersChanged:
        names = await self._children(paths.BROKER_IDS)
        ids = [BrokerId(int(name)) for name in names if name.isdigit()]
        found = [_broker(id, await self._data(paths.broker(id))) for id in sorted(ids)]
        return LiveBrokersChanged({broker.id: broker for broker in found if broker is not None})

    async def topics(self, known: Iterable[str]) -> TopicsReloaded:
        names = frozenset(await self._children(paths.TOPICS))
        new = await self._topics(sorted(names - set(known)))
        return TopicsReloaded(names, new, self._ids(new))

    async def partitions(self, name: str) -> PartitionsReloaded | None:
        topics = await self._topics([name])
        return PartitionsReloaded(name, topics[name]) if topics else None

    async def watch_topics(self, versions: Mapping[str, int]) -> None:
        """Hear of changes to topics that this controller wrote itself."""
        for name, version in versions.items():
            node = await self._data(paths.topic(name))
            if node is not None and node.version != version:
                self._tell(PartitionsChanged(name))  # somebody was quicker than the watch

    async def _deletions(self) -> DeletionsFound:
        return DeletionsFound(frozenset(await self._children(paths.DELETE_TOPICS)))

    async def _isr_changes(self) -> StatesChanged:
        names = await self._children(paths.ISR_CHANGES)
        notifications = [f"{paths.ISR_CHANGES}/{name}" for name in names]
        nodes = await self._store.get_many(notifications)
        told = [_read(PartitionsNode.decode, node) for node in nodes]
        changed = {tp for partitions in told if partitions for tp in partitions.partitions}
        states = await self.states(sorted(changed))
        return StatesChanged(states.states, tuple(notifications))

    async def states(self, tps: Sequence[TopicPartition]) -> StatesReloaded:
        nodes = await self._store.get_many([paths.partition_state(tp) for tp in tps])
        found = {tp: _leadership(node) for tp, node in zip(tps, nodes, strict=True)}
        return StatesReloaded({tp: led for tp, led in found.items() if led is not None})

    async def _log_dirs(self) -> LogDirFailuresFound:
        names = await self._children(paths.LOG_DIR_EVENTS)
        notifications = [f"{paths.LOG_DIR_EVENTS}/{name}" for name in names]
        nodes = await self._store.get_many(notifications)
        events = [_read(LogDirEventNode.decode, node) for node in nodes]
        return LogDirFailuresFound(frozenset(e.broker for e in events if e), tuple(notifications))

    async def _preferred_election(self) -> ElectionRequested | None:
        node = await self._data(paths.PREFERRED_ELECTION)
        if node is None:
            return None
        asked = _read(PartitionsNode.decode, node)
        partitions = () if asked is None else asked.partitions
        return ElectionRequested(None, ElectionKind.PREFERRED, partitions)

    async def _reassignment(self) -> ReassignmentRequested | None:
        node = await self._data(paths.REASSIGN_PARTITIONS)
        if node is None:
            return None
        asked = _read(ReassignmentNode.decode, node)
        return ReassignmentRequested(None, {} if asked is None else asked.replicas)

    async def _topics(self, names: Sequence[str]) -> dict[str, TopicAssignment]:
        found: dict[str, tuple[TopicNode, int]] = {}
        for name in names:
            node = await self._data(paths.topic(name))
            topic = _read(TopicNode.decode, node)
            if node is not None and topic is not None:
                found[name] = (topic, node.version)
        tps = [
            TopicPartition(name, n) for name, (topic, _) in found.items() for n in topic.partitions
        ]
        states = (await self.states(tps)).states
        return {
            name: _topic(name, topic, version, states) for name, (topic, version) in found.items()
        }

    async def _unclean(self, topics: Iterable[str]) -> dict[str, bool]:
        names = list(topics)
        nodes = await self._store.get_many([paths.topic_config(name) for name in names])
        configs = [_read(ConfigNode.decode, node) for node in nodes]
        return {
            name: config.overrides[UNCLEAN].strip().lower() == "true"
            for name, config in zip(names, configs, strict=True)
            if config is not None and UNCLEAN in config.overrides
        }

    def _ids(self, topics: Mapping[str, TopicAssignment]) -> dict[str, TopicId]:
        nameless = [name for name, topic in topics.items() if topic.id == NO_TOPIC_ID]
        return {name: new_topic_id(self._dice) for name in nameless}

    async def _data(self, path: str) -> Node | None:
        if path in self._watched:
            return await self._store.get(path)
        self._watched.add(path)
        return await self._watcher(path).data(path)

    async def _children(self, path: str) -> list[str]:
        watch = f"{path}/"  # told apart from a watch on the node's data
        if watch in self._watched:
            return await self._store.children(path)
        self._watched.add(watch)
        return await self._watcher(watch).children(path)

    def _watcher(self, watch: str) -> Watcher:
        def fired(change: Change) -> None:
            self._watched.discard(watch)
            self._tell(change)

        return Watcher(self._store, fired)


def new_topic_id(dice: Random) -> TopicId:
    """Never one that reads like a command line option, nor one of Kafka's reserved ids."""
    while True:
        id = TopicId(int=dice.getrandbits(128), version=4)
        if not id_text(id).startswith("-"):
            return id


def _read(decode: Callable[[bytes], Read], node: Node | None) -> Read | None:
    """A node that cannot be read counts as not there: one broken node must not stop a cluster."""
    try:
        return None if node is None else decode(node.data)
    except BadNode as error:
        log.error("a node of the store cannot be read and is left out: %s", error)
        return None


def _broker(id: BrokerId, node: Node | None) -> BrokerState | None:
    registered = _read(BrokerNode.decode, node)
    if node is None or registered is None:
        return None
    return BrokerState(id, BrokerEpoch(node.created), registered.endpoints, registered.rack)


def _leadership(node: Node | None) -> Leadership | None:
    if node is None:
        return None
    state = _read(StateNode.decode, node)
    if state is None:  # nobody can say who was in sync: nobody leads until an operator decides
        return Leadership(NO_BROKER, (), NO_EPOCH, ControllerEpoch(0), node.version)
    return Leadership(
        state.leader, state.isr, state.leader_epoch, state.controller_epoch, node.version
    )


def _topic(
    name: str, node: TopicNode, version: int, states: Mapping[TopicPartition, Leadership]
) -> TopicAssignment:
    partitions = {
        number: PartitionAssignment(
            replicas,
            node.adding.get(number, ()),
            node.removing.get(number, ()),
            leadership=states.get(TopicPartition(name, number)),
        )
        for number, replicas in node.partitions.items()
    }
    return TopicAssignment(node.topic_id, partitions, version)
