"""Promises of `ottla.cli.adopt_plan`."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from uuid import UUID

import pytest

from ottla.cli.adopt_plan import PRODUCER_ID_MARGIN, nodes, plan
from ottla.cli.topic_settings import Settings
from ottla.log.directories.inspection import DirectoryContents, FoundPartition
from ottla.log.directories.meta_properties import MetaProperties
from ottla.model.errors import UserError
from ottla.model.ids import NO_TOPIC_ID, BrokerId, LeaderEpoch, TopicPartition
from ottla.store import paths
from ottla.store.nodes import ClusterIdNode, ConfigNode, StateNode, TopicNode

A, B = Path("/a"), Path("/b")
ORDERS = UUID(int=5)


def found(
    topic: str, number: int, *, topic_id: UUID = ORDERS, epoch: int = 3, path: Path = A
) -> FoundPartition:
    partition = TopicPartition(topic, number)
    place = path / str(partition)
    return FoundPartition(partition, place, topic_id, 100, 0, 10, LeaderEpoch(epoch))


def directory(*partitions: FoundPartition, path: Path = A) -> DirectoryContents:
    meta = MetaProperties(BrokerId(7), "cluster", version=1)
    return DirectoryContents(path, meta, True, list(partitions), frozenset(), {}, -1)


def planned(*surveys: DirectoryContents, **settings: dict[str, str]) -> dict[str, bytes]:
    """What the tree would hold, by path."""
    named: Settings = {name.replace("_", "."): value for name, value in settings.items()}
    made = nodes(plan(surveys, named, new_ids=(UUID(int=n) for n in count(100))))
    return {node.path: node.data for node in made}


def test_every_partition_is_led_here_under_its_own_topic_id() -> None:
    tree = planned(directory(found("orders", 0), found("orders", 1, epoch=9)))
    topic = TopicNode.decode(tree[paths.topic("orders")])
    assert topic.topic_id == ORDERS
    assert topic.partitions == {0: (7,), 1: (7,)}
    state = StateNode.decode(tree[paths.partition_state(TopicPartition("orders", 1))])
    assert (state.leader, state.isr, state.leader_epoch) == (7, (7,), 9)
    assert ClusterIdNode.decode(tree[paths.CLUSTER_ID]).id == "cluster"


def test_parents_come_before_their_children() -> None:
    seen: set[str] = set()
    for path in planned(directory(found("orders", 0))):
        assert paths.parent(path) in seen | {"/"}, path
        seen.add(path)


def test_partitions_may_be_spread_over_several_directories() -> None:
    tree = planned(directory(found("t", 1)), directory(found("t", 0), path=B))
    assert TopicNode.decode(tree[paths.topic("t")]).partitions == {0: (7,), 1: (7,)}


def test_settings_come_from_the_file_and_internal_topics_have_their_own() -> None:
    tree = planned(
        directory(found("orders", 0), found("__consumer_offsets", 0, topic_id=UUID(int=6))),
        orders={"retention.ms": "5", "remote.storage.enable": "true"},
    )
    config = ConfigNode.decode(tree[paths.topic_config("orders")])
    assert config.overrides == {"retention.ms": "5"}
    internal = ConfigNode.decode(tree[paths.topic_config("__consumer_offsets")])
    assert internal.overrides["cleanup.policy"] == "compact"


def test_a_setting_we_do_not_know_is_left_out_with_a_word() -> None:
    one = directory(found("t", 0))
    made = plan([one], {"t": {"remote.storage.enable": "true"}, "x": {}}, new_ids=iter([]))
    assert any("remote.storage.enable is no setting of ours" in word for word in made.remarks)
    assert any("x: settings for a topic that is not here" in word for word in made.remarks)


def test_producers_get_ids_far_above_those_in_use() -> None:
    one = directory(found("t", 0))._replace(largest_producer_id=4_321)
    made = plan([one], {}, new_ids=iter([]))
    assert made.producer_ids is not None
    assert made.producer_ids.first == 5_000 + PRODUCER_ID_MARGIN
    assert plan([directory()], {}, new_ids=iter([])).producer_ids is None


def test_a_topic_of_the_time_before_ids_gets_one() -> None:
    tree = planned(directory(found("old", 0, topic_id=NO_TOPIC_ID)))
    assert TopicNode.decode(tree[paths.topic("old")]).topic_id == UUID(int=100)


@pytest.mark.parametrize(
    ("surveys", "says"),
    [
        ([directory(found("t", 0), found("t", 2))], "t: partitions 1 not found"),
        (
            [directory(found("t", 0)), directory(found("t", 0, path=B), path=B)],
            "found more than once",
        ),
        ([directory(found("t", 0), found("t", 1, topic_id=UUID(int=9)))], "different topics"),
        (
            [directory(found("t", 0))._replace(compacted=frozenset({"t"}))],
            "Kafka compacted this topic",
        ),
        (
            [directory(), directory(path=B)._replace(meta=MetaProperties(BrokerId(8), "cluster"))],
            "disagree on the broker id",
        ),
    ],
)
def test_what_stands_in_the_way_is_said(surveys: list[DirectoryContents], says: str) -> None:
    with pytest.raises(UserError, match=says):
        plan(surveys, {}, new_ids=iter([]))


def test_a_bad_setting_names_its_topic() -> None:
    with pytest.raises(UserError, match=r"t: .*retention\.ms"):
        plan([directory(found("t", 0))], {"t": {"retention.ms": "soon"}}, new_ids=iter([]))


def test_a_compacted_topic_is_taken_once_its_policy_is_known() -> None:
    one = directory(found("t", 0))._replace(compacted=frozenset({"t"}))
    assert plan([one], {"t": {"cleanup.policy": "compact"}}, new_ids=iter([])).topics
