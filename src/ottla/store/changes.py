"""A fired watch turned into a typed change.

Owns: which change each path stands for. `Watcher` reads and sets the watch in one operation, so no
change between the two is missed. Never interprets what it read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from ottla.store import paths
from ottla.store.port import Node, Store


class ControllerMoved(NamedTuple):
    """/controller was created, changed or deleted."""


class BrokersChanged(NamedTuple):
    """A broker registered, or its registration ended."""


class TopicsChanged(NamedTuple):
    """A topic was created or removed."""


class DeletionNodesChanged(NamedTuple):
    """A topic is to be deleted."""


class IsrsChanged(NamedTuple):
    """A leader changed an ISR."""


class LogDirsFailed(NamedTuple):
    """A broker lost a log directory."""


class ConfigsChanged(NamedTuple):
    """Settings changed."""


class ReassignmentNodeChanged(NamedTuple):
    """A reassignment was requested."""


class PreferredElectionNodeChanged(NamedTuple):
    """An election of preferred replicas was requested."""


class BrokerChanged(NamedTuple):
    """One broker changed its registration, or the registration ended."""

    broker: int


class PartitionsChanged(NamedTuple):
    """A topic got more partitions, or a reassignment of its replicas."""

    topic: str


class StateChanged(NamedTuple):
    """The leader or the ISR of a partition was written."""

    topic: str
    partition: int


Change: TypeAlias = (
    ControllerMoved
    | BrokersChanged
    | TopicsChanged
    | DeletionNodesChanged
    | IsrsChanged
    | LogDirsFailed
    | ConfigsChanged
    | ReassignmentNodeChanged
    | PreferredElectionNodeChanged
    | BrokerChanged
    | PartitionsChanged
    | StateChanged
)

_CHANGES_OF_CHILDREN: Final[Mapping[str, Change]] = {
    paths.BROKER_IDS: BrokersChanged(),
    paths.TOPICS: TopicsChanged(),
    paths.DELETE_TOPICS: DeletionNodesChanged(),
    paths.ISR_CHANGES: IsrsChanged(),
    paths.LOG_DIR_EVENTS: LogDirsFailed(),
    paths.CONFIG_CHANGES: ConfigsChanged(),
}
_CHANGES_OF_DATA: Final[Mapping[str, Change]] = {
    paths.CONTROLLER: ControllerMoved(),
    paths.REASSIGN_PARTITIONS: ReassignmentNodeChanged(),
    paths.PREFERRED_ELECTION: PreferredElectionNodeChanged(),
}


def change_of_data(path: str) -> Change:
    """The change that new data of this node stands for."""
    if path in _CHANGES_OF_DATA:
        return _CHANGES_OF_DATA[path]
    match path.split("/")[1:]:
        case ["brokers", "ids", broker]:
            return BrokerChanged(int(broker))
        case ["brokers", "topics", topic]:
            return PartitionsChanged(topic)
        case ["brokers", "topics", topic, "partitions", partition, "state"]:
            return StateChanged(topic, int(partition))
    raise AssertionError(f"no data watch is defined for {path}")


class Watcher:
    """Reads that report the next change of what they read."""

    def __init__(self, store: Store, on_change: Callable[[Change], None]) -> None:
        self._store = store
        self._on_change = on_change

    async def data(self, path: str) -> Node | None:
        change = change_of_data(path)
        return await self._store.watch_data(path, lambda _: self._on_change(change))

    async def children(self, path: str) -> list[str]:
        change = _CHANGES_OF_CHILDREN[path]
        return await self._store.watch_children(path, lambda _: self._on_change(change))
