"""Whatever happens in whatever order, what the controller believes is what the store holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.controller.machine import on_event
from ottla.controller.state import ControllerState
from ottla.model.ids import BrokerId, TopicPartition
from ottla.store import paths
from ottla.store.nodes import StateNode, TopicNode
from ottla.store.port import Create, Delete, Node, NodeExists, NoNode, Op
from ottla.store.tree import Draft, Tree
from tests.controller.transcript import COMMANDS, SCENARIOS, Actor

TPS = [TopicPartition(topic, number) for topic in ("t", "u") for number in (0, 1)]

ALIVE = st.lists(st.sampled_from(["1", "2", "3"]), unique=True).map(
    lambda ids: " ".join(["brokers", *ids])
)

COMMAND = st.one_of(
    ALIVE,
    st.sampled_from(
        [
            "create t 0=1,2 1=2,3",
            "create u 0=3,1,2",
            "more t 3",
            "delete t",
            "delete u",
            "balance",
            "elect preferred",
            "elect unclean",
            "unclean t true",
            "move t-0=3,1",
            "move t-0=cancel",
            "move u-0=1",
            "shutdown 1",
            "shutdown 2",
            "behind 1",
            "log-dir-failed 2",
            "became 1 t-0=kafka_storage_error",
            "became 1 t-0=none",
            "became 2 u-0=kafka_storage_error",
            "brokers 1@9 2@9 3@9",
        ]
    ),
    st.builds(
        "stopped {} {}={}".format,
        st.sampled_from([1, 2, 3]),
        st.sampled_from(TPS),
        st.sampled_from(["none", "kafka_storage_error"]),
    ),
)


def apply(tree: Tree, ops: tuple[Op, ...]) -> None:
    """As the writer does it: containers that are there and nodes that are gone are no obstacle."""
    for op in ops:
        draft = Draft(tree)
        try:
            draft.apply([op], 1)
        except NodeExists:
            assert isinstance(op, Create) and not op.data, op
        except NoNode:
            assert isinstance(op, Delete), op
        else:
            tree.merge(draft)


def check(state: ControllerState, tree: Tree) -> None:
    def node(path: str) -> Node | None:
        entry = tree.find(path)
        return entry.node() if entry else None

    assert sorted(state.topics) == sorted(tree.children(paths.TOPICS))
    for name, topic in state.topics.items():
        stored = node(paths.topic(name))
        assert stored is not None
        assert stored.version == topic.version
        assignment = TopicNode.decode(stored.data).partitions
        assert assignment == {n: p.replicas for n, p in topic.partitions.items()}
    for tp, partition in state.partitions():
        leadership = partition.leadership
        stored = node(paths.partition_state(tp))
        assert (stored is None) == (leadership is None)
        if stored is None or leadership is None:
            continue
        decoded = StateNode.decode(stored.data)
        assert stored.version == leadership.version
        assert (decoded.leader, decoded.isr) == (leadership.leader, leadership.isr)
        assert decoded.leader_epoch == leadership.leader_epoch
        assert leadership.isr, "somebody is always in sync"
        assert set(leadership.isr) <= set(partition.replicas)
        assert leadership.leader == -1 or leadership.leader in leadership.isr


@pytest.mark.spec("CTL-01", "CTL-31", "CTL-32", "CTL-37", "CTL-59", "CTL-65")
@settings(max_examples=300)
@given(st.lists(COMMAND, max_size=25))
@example(["create u 0=3,1,2", "move u-0=1", "became 2 u-0=kafka_storage_error"])
def test_the_state_is_what_is_stored_and_a_leader_is_always_in_its_isr(
    commands: list[str],
) -> None:
    actor, tree = Actor(), Tree()
    draft = Draft(tree)
    draft.apply([Create(path) for path in paths.ROOTS], 1)
    tree.merge(draft)
    actor.run("elected 1 1 2 3")
    leaders: dict[tuple[TopicPartition, int, int], BrokerId] = {}
    for command in commands:
        word, *rest = command.split()
        step = on_event(actor.state, COMMANDS[word](actor, rest))
        actor.state = step.state
        apply(tree, step.writes)
        check(step.state, tree)
        illegal = [text for text in step.warnings if "illegal state change" in text]
        assert illegal == [], command
        for tp, partition in step.state.partitions():
            if partition.leadership is not None:
                life = tree.find(paths.topic(tp.topic))
                assert life is not None
                epoch = (tp, life.node().created, partition.leadership.leader_epoch)
                leader = leaders.setdefault(epoch, partition.leadership.leader)
                assert leader == partition.leadership.leader, "one leader per epoch"


def test_every_story_is_told_by_a_test() -> None:
    test_sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for scenario in SCENARIOS.glob("*.txt"):
        assert f'play("{scenario.stem}")' in test_sources, scenario.stem
