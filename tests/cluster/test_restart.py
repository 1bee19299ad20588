"""What the next life of a broker knows of the last, however that ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.client.admin import Resource
from ottla.model.errors import ErrorCode
from ottla.security.acl import Operation
from tests.api.acl_requests import OPEN, created, described, rule
from tests.cluster.load import create_topic, produce, values
from tests.cluster.process import BrokerProcess, Ended
from tests.raw_requests import (
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    Line,
    batch,
    create_topics,
    produced,
)

DESCRIBE_CONFIGS = 32
DELETE_RECORDS = 21
NO_MORE = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}


def killed(broker: BrokerProcess) -> None:
    broker.kill()
    broker.start()


def stopped(broker: BrokerProcess) -> None:
    assert broker.terminate() == 0
    broker.start()


either_way = pytest.mark.parametrize("restart", [killed, stopped])
Restart = Callable[[BrokerProcess], None]


@pytest.mark.spec("CTL-75")
@either_way
def test_topics_their_ids_settings_and_offsets_outlive_the_process(
    tmp_path: Path, restart: Restart
) -> None:
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "kept", 3, retention_ms="123456", cleanup_policy="compact")
        create_topic(broker.address, "other")
        with ottla.Admin(bootstrap_servers=broker.address) as admin:
            change = {"consumer.session.timeout.ms": "50000"}
            admin.incremental_alter_configs({Resource.group("a/b"): change}).all()
        produce(broker.address, "other", [f"n-{number}" for number in range(50)])
        with Line(broker.address) as line:
            reply = line.ask(
                DELETE_RECORDS,
                2,
                topics=[{"name": "other", "partitions": [{"partition_index": 0, "offset": 20}]}],
                timeout=5_000,
            )
            assert reply.topics[0].partitions[0].low_watermark == 20
            before = known(line)
        restart(broker)
        with Line(broker.address) as line:
            assert known(line) == before
        produce(broker.address, "other", ["after"])
        expected = [*(f"n-{number}" for number in range(20, 50)), "after"]
        # A start offset inside a segment is written by a clean stop and every minute, as Kafka's.
        assert values(broker.address, "other")[-len(expected) :] == expected


@pytest.mark.spec("SEC-04")
@either_way
def test_access_rules_outlive_the_process_from_the_moment_they_are_acknowledged(
    tmp_path: Path, restart: Restart
) -> None:
    with BrokerProcess(tmp_path, OPEN) as broker:
        for number in range(5):
            with Line(broker.address) as line:
                assert created(line, rule(resource_name=f"t{number}")) == [ErrorCode.none]
            restart(broker)
        with Line(broker.address) as line:
            assert described(line) == [(f"t{number}", Operation.READ) for number in range(5)]


@pytest.mark.spec("CTL-17")
def test_whoever_is_let_in_finds_every_topic(tmp_path: Path) -> None:
    """The ready line means ready: not a moment in which topics seem to be gone."""
    with BrokerProcess(tmp_path) as broker:
        topics = [f"t{number}" for number in range(40)]
        with Line(broker.address) as line:
            create_topics(line, topics, partitions=5)
        for _ in range(3):
            stopped(broker)
            with Line(broker.address) as line:
                reply = line.ask(METADATA, 12, topics=None, **NO_MORE)
                assert sorted(topic.name for topic in reply.topics) == sorted(topics)
                leaders = {one.leader_id for topic in reply.topics for one in topic.partitions}
                assert leaders == {0}


def known(line: Line) -> dict[str, Any]:
    """What clients can ask about topics."""
    metadata = line.ask(METADATA, 12, topics=None, **NO_MORE)
    topics = {
        topic.name: (topic.topic_id, sorted(one.partition_index for one in topic.partitions))
        for topic in metadata.topics
    }
    asked = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        for kind, name in ((2, "kept"), (32, "a/b"))
    ]
    configs = line.ask(
        DESCRIBE_CONFIGS, 4, resources=asked, include_synonyms=False, include_documentation=False
    )
    settings = {one.name: one.value for result in configs.results for one in result.configs}
    assert settings["retention.ms"] == "123456"
    assert settings["consumer.session.timeout.ms"] == "50000"
    end = line.ask(
        LIST_OFFSETS,
        7,
        replica_id=-1,
        isolation_level=0,
        topics=[
            {
                "name": "other",
                "partitions": [
                    {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1},
                ],
            }
        ],
    )
    return {
        "cluster": metadata.cluster_id,
        "topics": topics,
        "settings": settings,
        "end": end.topics[0].partitions[0].offset,
    }


@pytest.mark.spec("TXN-08", "TXN-11", "TXN-14", "LOG-92")
@either_way
def test_a_producer_that_repeats_a_batch_after_the_restart_hears_its_first_offset(
    tmp_path: Path, restart: Restart
) -> None:
    """Kafka's snapshots hold the last batch only; the log tells the others."""
    remembered = 5
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker.address, "once")
        with Line(broker.address) as line:
            producer = new_producer(line)
            sent = [batch(f"v{at}", base_sequence=at, **producer) for at in range(7)]
            assert [produced(line, "once", one).base_offset for one in sent] == [*range(7)]
        restart(broker)
        with Line(broker.address) as line:
            for at in range(7 - remembered, 7):
                again = produced(line, "once", sent[at])
                assert (again.error_code, again.base_offset) == (ErrorCode.none, at)
            older = produced(line, "once", sent[6 - remembered])
            assert older.error_code is ErrorCode.out_of_order_sequence_number
            following = produced(line, "once", batch("v7", base_sequence=7, **producer))
            assert following.base_offset == 7
            assert new_producer(line)["producer_id"] > producer["producer_id"]


def new_producer(line: Line) -> dict[str, int]:
    given = line.ask(
        INIT_PRODUCER_ID,
        4,
        transactional_id=None,
        transaction_timeout=0,
        producer_id=-1,
        producer_epoch=-1,
    )
    return {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}


@pytest.mark.spec("LOG-03")
def test_a_second_broker_on_the_same_directory_is_refused_by_name(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "one") as broker:
        second = BrokerProcess(tmp_path / "two", dirs=broker.dirs)
        with pytest.raises(Ended, match="exit code 2"):
            second.start()
        assert (
            second.said
            == f"ottla: {broker.dirs[0]}: another process is using this data directory\n"
        )
        create_topic(broker.address, "unharmed")
        produce(broker.address, "unharmed", ["n"])
