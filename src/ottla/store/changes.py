"""A fired watch turned into a typed change.

Owns: which path means what. Reading through `Watcher` sets the watch again in the same breath, so
nothing that happens between a change and its reading is missed. Never interprets what it read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from ottla.store import paths
from ottla.store.port import Node, Store


class ControllerMoved(NamedTuple):
    """/controller came, changed or went."""


class BrokersChanged(NamedTuple):
    """A broker registered or is gone."""


class TopicsChanged(NamedTuple):
    """A topic was created or removed."""


class DeletionNodesChanged(NamedTuple):
    """A topic is to be deleted."""


class IsrsChanged(NamedTuple):
    """A leader changed an ISR."""


class LogDirsFailed(NamedTuple):
    """A broker lost a log directory."""


class ConfigsChanged(NamedTuple):
    """Somebody's settings changed."""


class ReassignmentNodeChanged(NamedTuple):
    """Partitions are to move."""


class PreferredElectionNodeChanged(NamedTuple):
    """Preferred replicas are to lead again."""


class BrokerChanged(NamedTuple):
    """One broker registered again with other fields, or is gone."""

    broker: int


class PartitionsChanged(NamedTuple):
    """A topic got more partitions, or its replicas are moving."""

    topic: str


class StateChanged(NamedTuple):
    """Who leads a partition, or who is in sync, was written by somebody."""

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

_OF_CHILDREN: Final[Mapping[str, Change]] = {
    paths.BROKER_IDS: BrokersChanged(),
    paths.TOPICS: TopicsChanged(),
    paths.DELETE_TOPICS: DeletionNodesChanged(),
    paths.ISR_CHANGES: IsrsChanged(),
    paths.LOG_DIR_EVENTS: LogDirsFailed(),
    paths.CONFIG_CHANGES: ConfigsChanged(),
}
_OF_DATA: Final[Mapping[str, Change]] = {
    paths.CONTROLLER: ControllerMoved(),
    paths.REASSIGN_PARTITIONS: ReassignmentNodeChanged(),
    paths.PREFERRED_ELECTION: PreferredElectionNodeChanged(),
}


def change_of_data(path: str) -> Change:
    """What it means that the data of this node changed."""
    if path in _OF_DATA:
        return _OF_DATA[path]
    match path.split("/")[1:]:
        case ["brokers", "ids", broker]:
            return BrokerChanged(int(broker))
        case ["brokers", "topics", topic]:
            return PartitionsChanged(topic)
        case ["brokers", "topics", topic, "partitions", partition, "state"]:
            return StateChanged(topic, int(partition))
    raise AssertionError(f"nobody watches the data of {path}")


class Watcher:
    """Reads that tell of the next change."""

    def __init__(self, store: Store, tell: Callable[[Change], None]) -> None:
        self._store = store
        self._tell = tell

    async def data(self, path: str) -> Node | None:
        change = change_of_data(path)
        return await self._store.watch_data(path, lambda _: self._tell(change))

    async def children(self, path: str) -> list[str]:
        change = _OF_CHILDREN[path]
        return await self._store.watch_children(path, lambda _: self._tell(change))
