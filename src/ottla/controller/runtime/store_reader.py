"""Reads the store for the controller and turns the content into events.

Owns which nodes are read for which event, and which paths are watched. Reading and setting a watch
is one operation, so no change in between is missed; a path is never watched twice. Never decides
anything. Reads are pipelined in batches, and other tasks have a turn after each batch: a new
controller reads thousands of nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Final, TypeVar

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
    UncleanElectionEnabled,
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
from ottla.delay.slices import in_slices, sliced
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
    StateChanged,
    TopicsChanged,
    Watcher,
    change_of_data,
)
from ottla.store.nodes import (
    BadNode,
    BrokerNode,
    ConfigNode,
    ControllerNode,
    LogDirEventNode,
    LogDirsNode,
    PartitionsNode,
    ReassignmentNode,
    StateNode,
    TopicNode,
    id_text,
)
from ottla.store.port import Node, Op, Store

log = logging.getLogger(__name__)

Decoded = TypeVar("Decoded")

READS_AT_ONCE: Final = 200
"""Nodes read at the same time, and decoded between two turns of the event loop."""


class StoreReader:
    def __init__(self, store: Store, on_change: Callable[[Change], None], dice: Random) -> None:
        self._store = store
        self._on_change = on_change
        self._dice = dice
        self._watched: set[str] = set()
        self._connection = 0
        """Counts how often all watches were lost: an earlier watch that still fires is ignored."""

    def forget_watches(self) -> None:
        """Their session was suspended, or has expired."""
        self._watched.clear()
        self._connection += 1

    async def controller(self) -> BrokerId | None:
        """The active controller; a node that cannot be parsed counts as none."""
        data = await self._data(paths.CONTROLLER)
        node = _decode(ControllerNode.decode, paths.CONTROLLER, data)
        return None if node is None else node.broker

    async def read_all(self, term: ControllerTerm) -> Elected:
        """Read the whole state for a new controller, and watch it from now on."""
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
            lost_disks=brokers.lost_disks,
        )

    async def event(self, change: Change, state: ControllerState) -> Event | None:
        """Read what has changed; returns the event."""
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

    async def reload(self, refused: Iterable[Op], state: ControllerState) -> list[Event]:
        """What a step with a version conflict wanted to write, as it is now."""
        changes = {change_of_data(op.path) for op in refused if _is_of_topic(op.path)}
        events: list[Event] = [await self.topics(state.topics)]
        names = sorted(c.topic for c in changes if isinstance(c, PartitionsChanged))
        nodes = await self._store.get_many([paths.topic(name) for name in names])
        for name, node in zip(names, nodes, strict=True):
            loaded = state.topics.get(name)
            if node is not None and loaded is not None and node.version != loaded.version:
                events += filter(None, [await self.partitions(name)])
        states = [TopicPartition(*change) for change in changes if isinstance(change, StateChanged)]
        return [*events, await self.states(sorted(states))]

    async def unclean_election(self, topic: str) -> UncleanElectionEnabled:
        return UncleanElectionEnabled(topic, (await self._unclean([topic])).get(topic))

    async def _brokers(self) -> LiveBrokersChanged:
        names = await self._children(paths.BROKER_IDS)
        ids = [BrokerId(int(name)) for name in names if name.isdigit()]
        read = await self._watched_data([paths.broker(id) for id in sorted(ids)])
        nodes = dict(zip(sorted(ids), read, strict=True))
        brokers = {id: _broker(id, node) for id, node in nodes.items()}
        return LiveBrokersChanged(
            {id: broker for id, broker in brokers.items() if broker is not None},
            await self._lost_disks(nodes),
        )

    async def _lost_disks(
        self, nodes: Mapping[BrokerId, Node | None]
    ) -> dict[BrokerId, LogDirsNode]:
        """Brokers registered with other log directories than the store remembers."""
        registered = {
            id: broker.log_dirs
            for id, node in nodes.items()
            if (broker := _decode(BrokerNode.decode, paths.broker(id), node)) is not None
            and broker.log_dirs is not None
        }
        remembered = await self._store.get_many([paths.log_dirs(id) for id in registered])
        return {
            id: log_dirs
            for (id, log_dirs), node in zip(registered.items(), remembered, strict=True)
            if node is not None and node.data != log_dirs.encode()
        }

    async def topics(self, loaded: Container[str]) -> TopicsReloaded:
        names = await self._children(paths.TOPICS)  # sorted
        new = await self._topics([name for name in names if name not in loaded])
        return TopicsReloaded(frozenset(names), new, self._ids(new))

    async def partitions(self, name: str) -> PartitionsReloaded | None:
        topics = await self._topics([name])
        return PartitionsReloaded(name, topics[name]) if topics else None

    async def watch_topics(self, versions: Mapping[str, int]) -> None:
        """Watch topics that this controller wrote itself."""
        names = list(versions)
        nodes = await self._watched_data([paths.topic(name) for name in names])
        for name, node in zip(names, nodes, strict=True):
            if node is not None and node.version != versions[name]:
                self._on_change(PartitionsChanged(name))  # changed before the watch was set

    async def _deletions(self) -> DeletionsFound:
        return DeletionsFound(frozenset(await self._children(paths.DELETE_TOPICS)))

    async def _isr_changes(self) -> StatesChanged:
        names = await self._children(paths.ISR_CHANGES)
        notifications = [f"{paths.ISR_CHANGES}/{name}" for name in names]
        nodes = await self._store.get_many(notifications)
        contents = map(partial(_decode, PartitionsNode.decode), notifications, nodes)
        changed = {tp for content in contents if content for tp in content.partitions}
        states = await self.states(sorted(changed))
        return StatesChanged(states.states, tuple(notifications))

    async def states(self, tps: Sequence[TopicPartition]) -> StatesReloaded:
        states: dict[TopicPartition, Leadership] = {}
        for some in sliced(tps, READS_AT_ONCE):
            nodes = await self._store.get_many([paths.partition_state(tp) for tp in some])
            for tp, node in zip(some, nodes, strict=True):
                state = _leadership(tp, node)
                if state is not None:
                    states[tp] = state
        return StatesReloaded(states)

    async def _log_dirs(self) -> LogDirFailuresFound:
        names = await self._children(paths.LOG_DIR_EVENTS)
        notifications = [f"{paths.LOG_DIR_EVENTS}/{name}" for name in names]
        nodes = await self._store.get_many(notifications)
        events = map(partial(_decode, LogDirEventNode.decode), notifications, nodes)
        return LogDirFailuresFound(frozenset(e.broker for e in events if e), tuple(notifications))

    async def _preferred_election(self) -> ElectionRequested | None:
        node = await self._data(paths.PREFERRED_ELECTION)
        if node is None:
            return None
        request = _decode(PartitionsNode.decode, paths.PREFERRED_ELECTION, node)
        partitions = () if request is None else request.partitions
        return ElectionRequested(None, ElectionKind.PREFERRED, partitions)

    async def _reassignment(self) -> ReassignmentRequested | None:
        node = await self._data(paths.REASSIGN_PARTITIONS)
        if node is None:
            return None
        request = _decode(ReassignmentNode.decode, paths.REASSIGN_PARTITIONS, node)
        return ReassignmentRequested(None, {} if request is None else request.replicas)

    async def _topics(self, names: Sequence[str]) -> dict[str, TopicAssignment]:
        topics: dict[str, tuple[TopicNode, int]] = {}
        for some in sliced(names, READS_AT_ONCE):
            nodes = await self._watched_data([paths.topic(name) for name in some])
            for name, node in zip(some, nodes, strict=True):
                topic = _decode(TopicNode.decode, paths.topic(name), node)
                if node is not None and topic is not None:
                    topics[name] = (topic, node.version)
        tps = [
            TopicPartition(name, n) for name, (topic, _) in topics.items() for n in topic.partitions
        ]
        states = (await self.states(tps)).states
        return {
            name: _topic(name, topic, version, states)
            async for name, (topic, version) in in_slices(topics.items())
        }

    async def _unclean(self, topics: Iterable[str]) -> dict[str, bool]:
        unclean: dict[str, bool] = {}
        for names in sliced(list(topics), READS_AT_ONCE):
            config_paths = [paths.topic_config(name) for name in names]
            nodes = await self._store.get_many(config_paths)
            configs = map(partial(_decode, ConfigNode.decode), config_paths, nodes)
            for name, config in zip(names, configs, strict=True):
                if config is not None and UNCLEAN in config.overrides:
                    unclean[name] = config.overrides[UNCLEAN].strip().lower() == "true"
        return unclean

    def _ids(self, topics: Mapping[str, TopicAssignment]) -> dict[str, TopicId]:
        nameless = [name for name, topic in topics.items() if topic.id == NO_TOPIC_ID]
        return {name: new_topic_id(self._dice) for name in nameless}

    async def _data(self, path: str) -> Node | None:
        if path in self._watched:
            return await self._store.get(path)
        with self._watching(path) as watcher:
            return await watcher.data(path)

    async def _watched_data(self, wanted: Sequence[str]) -> list[Node | None]:
        """As `_data`, of several nodes at the same time."""
        nodes: list[Node | None] = []
        for some in sliced(wanted, READS_AT_ONCE):
            replies = await asyncio.gather(*map(self._data, some), return_exceptions=True)
            for reply in replies:
                if isinstance(reply, BaseException):
                    raise reply
                nodes.append(reply)
        return nodes

    async def _children(self, path: str) -> list[str]:
        watch = f"{path}/"  # distinct from a watch on the node's data
        if watch in self._watched:
            return await self._store.children(path)
        with self._watching(watch) as watcher:
            return await watcher.children(path)

    @contextmanager
    def _watching(self, watch: str) -> Iterator[Watcher]:
        """Set this watch, for as long as the connection lasts and unless the read fails."""
        connection = self._connection

        def fired(change: Change) -> None:
            if connection == self._connection:
                self._watched.discard(watch)
                self._on_change(change)

        self._watched.add(watch)
        try:
            yield Watcher(self._store, fired)
        except BaseException:
            if connection == self._connection:
                self._watched.discard(watch)
            raise


def new_topic_id(dice: Random) -> TopicId:
    """Never one with a leading dash, like an option, nor one of Kafka's reserved ids."""
    while True:
        id = TopicId(int=dice.getrandbits(128), version=4)
        if not id_text(id).startswith("-"):
            return id


def _decode(decode: Callable[[bytes], Decoded], path: str, node: Node | None) -> Decoded | None:
    """None for a node that cannot be parsed: one broken node must not stop the cluster."""
    try:
        return None if node is None else decode(node.data)
    except BadNode as error:
        log.error("cannot parse node %s of the metadata store, ignoring it: %s", path, error)
        return None


def _broker(id: BrokerId, node: Node | None) -> BrokerState | None:
    registered = _decode(BrokerNode.decode, paths.broker(id), node)
    if node is None or registered is None:
        return None
    return BrokerState(id, BrokerEpoch(node.created), registered.endpoints, registered.rack)


def _leadership(tp: TopicPartition, node: Node | None) -> Leadership | None:
    if node is None:
        return None
    state = _decode(StateNode.decode, paths.partition_state(tp), node)
    if state is None:  # the ISR is unknown: no leader until an operator decides
        return Leadership(NO_BROKER, (), NO_EPOCH, ControllerEpoch(0), node.version)
    return Leadership(
        state.leader,
        state.isr,
        state.leader_epoch,
        state.controller_epoch,
        node.version,
        node.modified,
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


def _is_of_topic(path: str) -> bool:
    """A topic's node, or the state of one of its partitions."""
    in_topics = path.startswith(f"{paths.TOPICS}/")
    return in_topics and (path.endswith("/state") or paths.parent(path) == paths.TOPICS)
