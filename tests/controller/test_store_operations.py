"""The controller's writes."""

from __future__ import annotations

import pytest

from ottla.controller import store_operations
from ottla.controller.state import Leadership, PartitionAssignment, TopicAssignment
from ottla.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.store import paths
from ottla.store.nodes import StateNode, TopicNode
from ottla.store.port import Create, Delete
from ottla.store.tree import Draft, Tree
from tests.controller.transcript import topic_id

ONE, TWO = BrokerId(1), BrokerId(2)
LED = Leadership(ONE, (ONE, TWO), LeaderEpoch(3), ControllerEpoch(4), 0)
TOPIC = TopicAssignment(
    topic_id("t"), {0: PartitionAssignment((ONE, TWO), (TWO,), (), leadership=LED)}, 0
)


@pytest.mark.spec("CTL-05", "CTL-06", "CTL-12")
def test_a_topic_is_its_settings_its_assignment_and_the_states_of_its_partitions() -> None:
    tree = Tree()
    draft = Draft(tree)
    draft.apply([Create(path) for path in paths.ROOTS], 1)
    tp = TopicPartition("t", 0)
    ops = store_operations.create_topic(
        "t", TOPIC, {"retention.ms": "1"}
    ) + store_operations.create_state(tp, LED)
    draft.apply(ops, 1)
    tree.merge(draft)
    node = tree.find(paths.topic("t"))
    assert node is not None
    stored = TopicNode.decode(node.node().data)
    assert stored.partitions == {0: (1, 2)}
    assert stored.adding == {0: (2,)}
    state = tree.find(paths.partition_state(tp))
    assert state is not None
    assert StateNode.decode(state.node().data) == (1, 3, (1, 2), 4)
    assert tree.children(paths.CONFIG_CHANGES) == ["config_change_0000000000"]
    deletion = Draft(tree)
    deletion.apply([Create(paths.delete_topic("t")), *store_operations.delete_topic("t", TOPIC)], 1)
    tree.merge(deletion)
    assert tree.children(paths.TOPICS) == []
    assert tree.children(paths.CONFIG_TOPICS) == []
    assert tree.children(paths.DELETE_TOPICS) == []


@pytest.mark.spec("CTL-54")
def test_the_request_to_delete_goes_last_so_that_it_can_be_resumed() -> None:
    assert store_operations.delete_topic("t", TOPIC)[-1] == Delete(paths.delete_topic("t"))


def test_a_topic_without_settings_leaves_no_note_of_them() -> None:
    assert not any(
        op.path.startswith(paths.CONFIG_CHANGES)
        for op in store_operations.create_topic("t", TOPIC, {})
    )
