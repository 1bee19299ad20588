from __future__ import annotations

import pytest

from ottla.model.ids import BrokerId, TopicPartition
from ottla.store import paths

TP = TopicPartition("orders", 3)


@pytest.mark.spec("CTL-02", "CTL-03", "CTL-07", "CTL-08", "CTL-09", "CTL-13")
def test_things_are_kept_where_kafka_keeps_them() -> None:
    assert paths.CONTROLLER == "/controller"
    assert paths.CONTROLLER_EPOCH == "/controller_epoch"
    assert paths.BROKER_SEQUENCE == "/brokers/seqid"
    assert paths.CLUSTER_ID == "/cluster/id"
    assert paths.PRODUCER_ID_BLOCK == "/latest_producer_id_block"
    assert paths.REASSIGN_PARTITIONS == "/admin/reassign_partitions"
    assert paths.PREFERRED_ELECTION == "/admin/preferred_replica_election"
    assert paths.delete_topic("orders") == "/admin/delete_topics/orders"


@pytest.mark.spec("CTL-04", "CTL-05", "CTL-06", "CTL-12")
def test_brokers_topics_and_settings_have_nodes_of_their_own() -> None:
    assert paths.broker(BrokerId(7)) == "/brokers/ids/7"
    assert paths.topic("orders") == "/brokers/topics/orders"
    assert paths.partitions("orders") == "/brokers/topics/orders/partitions"
    assert paths.partition(TP) == "/brokers/topics/orders/partitions/3"
    assert paths.partition_state(TP) == "/brokers/topics/orders/partitions/3/state"
    assert paths.topic_config("orders") == "/config/topics/orders"
    assert paths.broker_config(BrokerId(7)) == "/config/brokers/7"
    assert paths.broker_config(None) == "/config/brokers/<default>"


def test_a_path_has_a_parent_and_a_name() -> None:
    assert (paths.parent("/a/b"), paths.name("/a/b")) == ("/a", "b")
    assert (paths.parent("/a"), paths.name("/a")) == ("/", "a")
    assert list(paths.ancestors("/a/b/c")) == ["/a", "/a/b"]
    assert list(paths.ancestors("/a")) == []


def test_the_roots_can_be_created_in_their_order() -> None:
    created = {"/"}
    for root in paths.ROOTS:
        assert paths.parent(root) in created
        created.add(root)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("billing", "billing"),
        ("..", "%2E%2E"),
        ("a.b", "a.b"),
        ("a/b%", "a%2Fb%25"),
        ("\0\x1f\x7f\x9f", "%00%1F%7F%C2%9F"),
        ("\ue000\uf8ff\ufff0\uffff", "%EE%80%80%EF%A3%BF%EF%BF%B0%EF%BF%BF"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE} \N{SNOWMAN}",) * 2,
    ],
)
def test_a_name_becomes_one_step_that_zookeeper_takes(name: str, step: str) -> None:
    assert paths.quoted(name) == step
    assert paths.plain(step) == name
