"""The cluster as a client knows it, and how news change that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.client.cluster_view import NOBODY, ClusterView, Node
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

ID = UUID(int=7)


def partition(index: int, leader: int = 1, epoch: int = 0) -> Any:
    return SimpleNamespace(
        partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2],
        isr_nodes=[1], offline_replicas=[2], error_code=ErrorCode.none,
    )  # fmt: skip


def topic(
    name: str, *partitions: Any, id: UUID | None = ID, error: ErrorCode = ErrorCode.none
) -> Any:
    return SimpleNamespace(
        name=name, topic_id=id, is_internal=False, partitions=partitions, error_code=error,
        topic_authorized_operations=0,
    )  # fmt: skip


def reply(*topics: Any, brokers: tuple[int, ...] = (1, 2)) -> Any:
    return SimpleNamespace(
        brokers=[SimpleNamespace(node_id=id, host=f"h{id}", port=9, rack=None) for id in brokers],
        cluster_id="c", controller_id=2, topics=topics,
    )  # fmt: skip


@pytest.mark.spec("PRD-07")
def test_a_reply_is_an_index_of_nodes_topics_partitions_and_leaders() -> None:
    view = ClusterView().with_metadata(reply(topic("a", partition(1, 2), partition(0))), None)
    assert (view.cluster_id, view.controller_id) == ("c", 2)
    assert view.nodes == {1: Node(1, "h1", 9), 2: Node(2, "h2", 9)}
    assert [each.index for each in view.topics["a"].partitions] == [0, 1]
    assert view.leader(TopicPartition("a", 1)) == 2
    first = view.partition(TopicPartition("a", 0))
    assert first is not None
    assert (first.replicas, first.isr, first.offline) == ((1, 2), (1,), (2,))


def test_what_is_not_known_has_no_leader() -> None:
    view = ClusterView().with_metadata(reply(topic("a", partition(0, -1))), None)
    assert view.leader(TopicPartition("a", 0)) == NOBODY
    assert view.leader(TopicPartition("a", 5)) == NOBODY
    assert view.leader(TopicPartition("b", 0)) == NOBODY
    assert view.topics["a"].available == ()


def test_news_of_some_topics_leave_the_others_alone() -> None:
    view = ClusterView().with_metadata(
        reply(topic("a", partition(0)), topic("b", partition(0))), None
    )
    view = view.with_metadata(
        reply(topic("b", error=ErrorCode.unknown_topic_or_partition), brokers=(3,)), ["b"]
    )
    assert set(view.topics) == {"a"}
    assert view.errors == {"b": ErrorCode.unknown_topic_or_partition}
    assert set(view.nodes) == {3}
    view = view.with_metadata(reply(topic("b", partition(0))), ["b"])
    assert not view.errors


def test_news_of_all_topics_forget_those_that_are_gone() -> None:
    view = ClusterView().with_metadata(reply(topic("a", partition(0))), None)
    assert set(view.with_metadata(reply(), None).topics) == set()


def test_a_broker_that_lags_behind_does_not_bring_an_old_leader_back() -> None:
    view = ClusterView().with_metadata(reply(topic("a", partition(0, 1, epoch=5))), None)
    assert view.with_metadata(reply(topic("a", partition(0, 2, epoch=4))), None).leader(
        TopicPartition("a", 0)
    ) == 1  # fmt: skip
    again = view.with_metadata(reply(topic("a", partition(0, 2, epoch=0), id=UUID(int=8))), None)
    assert again.leader(TopicPartition("a", 0)) == 2, "the topic was made anew"


def test_a_new_leader_told_in_passing_is_believed_if_it_is_newer() -> None:
    tp = TopicPartition("a", 0)
    view = ClusterView().with_metadata(reply(topic("a", partition(0, 1, epoch=5))), None)
    assert view.with_leader(tp, 2, 6).leader(tp) == 2
    assert view.with_leader(tp, 2, 5) is view
    assert view.with_leader(tp, 9, 6) is view, "a broker nobody has heard of"


def test_a_broker_heard_of_elsewhere_is_added_once() -> None:
    view = ClusterView().with_node(Node(5, "h", 1))
    assert view.nodes[5] == Node(5, "h", 1)
    assert view.with_node(Node(5, "h", 1)) is view
    assert view.with_node(Node(5, "h", 2)).nodes[5].port == 2
    assert str(Node(5, "h", 1)) == "h:1 (broker 5)"


def test_topics_can_be_forgotten() -> None:
    view = ClusterView().with_metadata(
        reply(topic("a", partition(0)), topic("b", partition(0))), None
    )
    assert set(view.without({"a"}).topics) == {"b"}


def test_the_topics_of_a_broker_are_those_of_which_it_leads_a_partition() -> None:
    known = reply(topic("a", partition(0, 1), partition(1, 2)), topic("b", partition(0, 2)))
    view = ClusterView().with_metadata(known, None)
    assert view.topics_led_by(1) == {"a"}
    assert view.topics_led_by(2) == {"a", "b"}
    assert view.topics_led_by(3) == set()
