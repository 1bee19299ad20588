"""Reads the store for the controller: what is there becomes an event.

Owns which nodes are read for which event, and which paths are being watched. A watch is set in the
same breath as the reading, so nothing is missed between; a path that is still watched is not
watched twice. Never decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from ottla.controller.events import (
    BrokersSeen,
    DeletionsSeen,
    Elected,
    ElectionAsked,
    ElectionKind,
    Event,
    LogDirsSeen,
    MovesAsked,
    PartitionsSeen,
    StatesReread,
    StatesSeen,
    TopicsSeen,
)
from ottla.controller.office import Term
from ottla.controller.state import Broker, ControllerState, Leadership, Partition, Topic
from ottla.controller.topics import UNCLEAN
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    TopicId,
    TopicPartition,
)
from ottla.store import paths
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
from ottla.store.watches import (
    BrokerChanged,
    BrokersChanged,
    Change,
    DeletionsAsked,
    IsrsChanged,
    LogDirsFailed,
    PartitionsChanged,
    PreferredElectionAsked,
    ReassignmentAsked,
    TopicsChanged,
    Watcher,
)


class Readings:
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
        node = await self._data(paths.CONTROLLER)
        try:
            return None if node is None else ControllerNode.decode(node.data).broker
        except BadNode:
            return None

    async def everything(self, term: Term) -> Elected:
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
            case DeletionsAsked():
                return await self._deletions()
            case IsrsChanged():
                return await self._isr_changes()
            case LogDirsFailed():
                return await self._log_dirs()
            case PreferredElectionAsked():
                return await self._preferred_election()
            case ReassignmentAsked():
                return await self._reassignment()
            case _:
                return None

    async def _brokers(self) -> BrokersSeen:
        ids = [BrokerId(int(name)) for name in await self._children(paths.BROKER_IDS)]
        nodes = [(id, await self._data(paths.broker(id))) for id in sorted(ids)]
        return BrokersSeen({id: _broker(id, node) for id, node in nodes if node is not None})

    async def topics(self, known: Iterable[str]) -> TopicsSeen:
        names = frozenset(await self._children(paths.TOPICS))
        new = await self._topics(sorted(names - set(known)))
        return TopicsSeen(names, new, self._ids(new))

    async def partitions(self, name: str) -> PartitionsSeen | None:
        topics = await self._topics([name])
        return PartitionsSeen(name, topics[name]) if topics else None

    async def watch_topics(self, versions: Mapping[str, int]) -> None:
        """Hear of changes to topics that this controller wrote itself."""
        for name, version in versions.items():
            node = await self._data(paths.topic(name))
            if node is not None and node.version != version:
                self._tell(PartitionsChanged(name))  # somebody was quicker than the watch

    async def _deletions(self) -> DeletionsSeen:
        return DeletionsSeen(frozenset(await self._children(paths.DELETE_TOPICS)))

    async def _isr_changes(self) -> StatesSeen:
        names = await self._children(paths.ISR_CHANGES)
        notifications = [f"{paths.ISR_CHANGES}/{name}" for name in names]
        nodes = await self._store.get_many(notifications)
        told = [PartitionsNode.decode(node.data).partitions for node in nodes if node]
        states = await self.states(sorted({tp for partitions in told for tp in partitions}))
        return StatesSeen(states.states, tuple(notifications))

    async def states(self, tps: Sequence[TopicPartition]) -> StatesReread:
        nodes = await self._store.get_many([paths.partition_state(tp) for tp in tps])
        pairs = zip(tps, nodes, strict=True)
        return StatesReread({tp: _leadership(node) for tp, node in pairs if node is not None})

    async def _log_dirs(self) -> LogDirsSeen:
        names = await self._children(paths.LOG_DIR_EVENTS)
        notifications = [f"{paths.LOG_DIR_EVENTS}/{name}" for name in names]
        nodes = await self._store.get_many(notifications)
        brokers = frozenset(LogDirEventNode.decode(node.data).broker for node in nodes if node)
        return LogDirsSeen(brokers, tuple(notifications))

    async def _preferred_election(self) -> ElectionAsked | None:
        node = await self._data(paths.PREFERRED_ELECTION)
        if node is None:
            return None
        asked = PartitionsNode.decode(node.data).partitions
        return ElectionAsked(None, ElectionKind.PREFERRED, asked)

    async def _reassignment(self) -> MovesAsked | None:
        node = await self._data(paths.REASSIGN_PARTITIONS)
        return (
            None if node is None else MovesAsked(None, ReassignmentNode.decode(node.data).replicas)
        )

    async def _topics(self, names: Sequence[str]) -> dict[str, Topic]:
        nodes = [(name, await self._data(paths.topic(name))) for name in names]
        found = {name: (TopicNode.decode(n.data), n.version) for name, n in nodes if n is not None}
        tps = [
            TopicPartition(name, number) for name in found for number in found[name][0].partitions
        ]
        states = (await self.states(tps)).states
        return {
            name: _topic(name, node, version, states) for name, (node, version) in found.items()
        }

    async def _unclean(self, topics: Iterable[str]) -> dict[str, bool]:
        names = list(topics)
        nodes = await self._store.get_many([paths.topic_config(name) for name in names])
        overrides = {
            name: ConfigNode.decode(node.data).overrides
            for name, node in zip(names, nodes, strict=True)
            if node is not None
        }
        return {
            name: said[UNCLEAN].strip().lower() == "true"
            for name, said in overrides.items()
            if UNCLEAN in said
        }

    def _ids(self, topics: Mapping[str, Topic]) -> dict[str, TopicId]:
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


def _broker(id: BrokerId, node: Node) -> Broker:
    registered = BrokerNode.decode(node.data)
    return Broker(id, BrokerEpoch(node.created), registered.endpoints, registered.rack)


def _leadership(node: Node) -> Leadership:
    state = StateNode.decode(node.data)
    return Leadership(
        state.leader, state.isr, state.leader_epoch, state.controller_epoch, node.version
    )


def _topic(
    name: str, node: TopicNode, version: int, states: Mapping[TopicPartition, Leadership]
) -> Topic:
    partitions = {
        number: Partition(
            replicas,
            node.adding.get(number, ()),
            node.removing.get(number, ()),
            leadership=states.get(TopicPartition(name, number)),
        )
        for number, replicas in node.partitions.items()
    }
    return Topic(node.topic_id, partitions, version)
