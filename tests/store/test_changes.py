from __future__ import annotations

import pytest

from ottla.store import changes, paths
from ottla.store.changes import Change, Watcher, change_of_data
from ottla.store.memory import Ensemble, MemoryStore

CHILDREN: list[tuple[str, Change]] = [
    (paths.BROKER_IDS, changes.BrokersChanged()),
    (paths.TOPICS, changes.TopicsChanged()),
    (paths.DELETE_TOPICS, changes.DeletionNodesChanged()),
    (paths.ISR_CHANGES, changes.IsrsChanged()),
    (paths.LOG_DIR_EVENTS, changes.LogDirsFailed()),
    (paths.CONFIG_CHANGES, changes.ConfigsChanged()),
]
DATA: list[tuple[str, Change]] = [
    (paths.CONTROLLER, changes.ControllerMoved()),
    (paths.REASSIGN_PARTITIONS, changes.ReassignmentNodeChanged()),
    (paths.PREFERRED_ELECTION, changes.PreferredElectionNodeChanged()),
    ("/brokers/ids/7", changes.BrokerChanged(7)),
    ("/brokers/topics/orders", changes.PartitionsChanged("orders")),
    ("/brokers/topics/orders/partitions/3/state", changes.StateChanged("orders", 3)),
]


@pytest.mark.parametrize(("path", "change"), CHILDREN)
async def test_a_child_that_comes_or_goes_is_a_typed_change(path: str, change: Change) -> None:
    assert await _heard(path, children=True) == [change]


@pytest.mark.parametrize(("path", "change"), DATA)
async def test_a_node_that_changes_is_a_typed_change(path: str, change: Change) -> None:
    assert await _heard(path, children=False) == [change]


def test_nobody_watches_just_anything() -> None:
    with pytest.raises(AssertionError):
        change_of_data("/somewhere/else")


async def _heard(path: str, *, children: bool) -> list[Change]:
    changes: list[Change] = []
    store = MemoryStore(Ensemble())
    await store.start()
    for parent in paths.ancestors(path):
        await store.create(parent)
    watcher = Watcher(store, changes.append)
    if children:
        await store.create(path)
        assert await watcher.children(path) == []
        await store.create(f"{path}/child")
    else:
        assert await watcher.data(path) is None
        await store.create(path)
    await store.get("/")  # the watch runs on the loop, soon
    return changes
