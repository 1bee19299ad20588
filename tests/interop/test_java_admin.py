"""What only the Java admin asks a broker: the cluster, its disks, elections."""

from __future__ import annotations

import pytest

from tests.interop.conftest import MakeTopic, Opened
from tests.interop.java_client import JavaClient, Refused
from tests.interop.series import Series


@pytest.fixture(params=["java-3.9", "java-4"])
def java(request: pytest.FixtureRequest, opened: Opened) -> JavaClient:
    client = opened(request.param)
    assert isinstance(client, JavaClient)
    return client


@pytest.mark.spec("WIRE-29")
def test_the_cluster_is_one_node_with_an_id_and_a_controller(java: JavaClient) -> None:
    cluster_id, controller, count = java.ask("cluster", "")
    assert len(cluster_id) == 22
    assert int(controller) >= 0
    assert count == "1"


def test_log_directories_tell_the_size_of_a_partition(
    java: JavaClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert java.ask("bytes", topic) == ["0"]
    java.produce(topic, Series(1, -1, value_bytes=100_000), "none")
    (size,) = java.ask("bytes", topic)
    assert 100_000 < int(size) < 101_000


def test_an_election_that_changes_nothing_is_told_so(
    java: JavaClient, make_topic: MakeTopic
) -> None:
    assert java.ask("elect", make_topic()) == ["ElectionNotNeededException"]


def test_a_setting_that_makes_no_sense_is_refused(java: JavaClient, make_topic: MakeTopic) -> None:
    with pytest.raises(Refused) as refused:
        java.alter(make_topic(), {"retention.ms": "soon"})
    assert refused.value.refusal.exception == "InvalidConfigurationException"


def test_a_topic_that_exists_is_not_created_again(java: JavaClient, make_topic: MakeTopic) -> None:
    with pytest.raises(Refused) as refused:
        java.create_topic(make_topic(), 1, {})
    assert refused.value.refusal.exception == "TopicExistsException"


def test_partitions_cannot_be_taken_away(java: JavaClient, make_topic: MakeTopic) -> None:
    with pytest.raises(Refused) as refused:
        java.add_partitions(make_topic(partitions=3), 2)
    assert refused.value.refusal.exception == "InvalidPartitionsException"
