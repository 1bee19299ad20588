"""The admin client against Ottla and against Apache Kafka: the same calls, the same answers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

import ottla
from ottla import ErrorCode, KafkaError, TopicPartition
from ottla.client.admin import (
    CommittedOffset,
    ConfigSource,
    ElectionKind,
    NewTopic,
    OffsetSpec,
    Replica,
    Resource,
    ResourceKind,
)
from tools import nodes

T0 = 1_700_000_000_000
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def admin(cluster_under_test: nodes.Node) -> Iterator[ottla.Admin]:
    with ottla.Admin(bootstrap_servers=cluster_under_test.bootstrap) as admin:
        yield admin


@pytest.fixture
def topic(admin: ottla.Admin) -> str:
    """A new topic with two partitions that keeps its records."""
    name = f"admin-{next(_numbers)}"
    admin.create_topic(name, partitions=2, configs={"retention.ms": "-1"})
    eventually(lambda: name in admin.list_topics(), True)
    return name


@pytest.fixture
def filled(cluster_under_test: nodes.Node, topic: str) -> TopicPartition:
    """Five records, a second apart."""
    with ottla.Producer(bootstrap_servers=cluster_under_test.bootstrap) as producer:
        for at in range(5):
            producer.send(topic, str(at).encode(), partition=0, timestamp_ms=T0 + at * 1000)
        producer.flush()
    return TopicPartition(topic, 0)


def eventually(get: Callable[[], object], wanted: object) -> None:
    """Kafka's brokers hear of a change a moment after it was acknowledged."""
    end = time.monotonic() + 30
    while (found := get()) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.02)


def code(outcome: object) -> ErrorCode:
    assert isinstance(outcome, KafkaError), outcome
    return outcome.code


@pytest.mark.spec("TOOL-18")
def test_topics(admin: ottla.Admin, topic: str) -> None:
    described = admin.describe_topic(topic)
    assert [one.index for one in described.partitions] == [0, 1]
    assert all(one.leader == one.replicas[0] for one in described.partitions)
    admin.create_partitions({topic: 3}).all()
    eventually(lambda: len(admin.describe_topic(topic).partitions), 3)
    outcomes = admin.create_topics([NewTopic(topic), NewTopic("no good name")])
    assert code(outcomes[topic]) is ErrorCode.topic_already_exists
    assert code(outcomes["no good name"]) is ErrorCode.invalid_topic_exception
    assert code(admin.create_partitions({topic: 2})[topic]) is ErrorCode.invalid_partitions
    assert code(admin.describe_topics(["none"])["none"]) is ErrorCode.unknown_topic_or_partition
    admin.delete_topic(topic)
    eventually(lambda: topic in admin.list_topics(), False)


@pytest.mark.spec("TOOL-18")
def test_settings(admin: ottla.Admin, topic: str) -> None:
    resource = Resource.topic(topic)
    admin.incremental_alter_configs({resource: {"segment.ms": "86400000"}}).all()

    def said() -> tuple[ConfigSource, str | None]:
        entry = admin.describe_configs([resource]).one()["segment.ms"]
        return entry.source, entry.value

    eventually(said, (ConfigSource.DYNAMIC_TOPIC_CONFIG, "86400000"))
    refused = admin.incremental_alter_configs({resource: {"segment.ms": "soon"}})
    assert code(refused[resource]) is ErrorCode.invalid_config
    broker = admin.describe_cluster().brokers[0].id
    assert admin.describe_configs([Resource.broker(broker)]).one()["log.dirs"].read_only
    assert resource in admin.list_config_resources()


@pytest.mark.spec("TOOL-18")
def test_settings_of_groups(admin: ottla.Admin, topic: str) -> None:
    name, resource = "consumer.session.timeout.ms", Resource.group(topic)
    admin.incremental_alter_configs({resource: {name: "50000"}}).all()

    def said() -> tuple[ConfigSource, str | None]:
        entry = admin.describe_configs([resource]).one()[name]
        return entry.source, entry.value

    eventually(said, (ConfigSource.DYNAMIC_GROUP_CONFIG, "50000"))
    assert resource in admin.list_config_resources([ResourceKind.GROUP])
    for bad in ("soon", "44999", "60001"):
        refused = admin.incremental_alter_configs({resource: {name: bad}})
        assert code(refused[resource]) is ErrorCode.invalid_config
    admin.incremental_alter_configs({resource: {name: None}}).all()
    eventually(said, (ConfigSource.DEFAULT_CONFIG, "45000"))


@pytest.mark.spec("TOOL-18")
def test_offsets_and_deleting_records(admin: ottla.Admin, filled: TopicPartition) -> None:
    def at(spec: int) -> int | None:
        return admin.list_offsets({filled: spec}).one().offset

    specs = (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP, T0 + 1500, T0 * 2)
    assert [at(spec) for spec in specs] == [0, 5, 4, 2, None]
    assert admin.delete_records({filled: 3}).one() == 3
    assert at(OffsetSpec.EARLIEST) == 3
    assert code(admin.delete_records({filled: 99})[filled]) is ErrorCode.offset_out_of_range


@pytest.mark.spec("TOOL-12", "TOOL-18")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups(
    admin: ottla.Admin, cluster_under_test: nodes.Node, filled: TopicPartition, protocol: str
) -> None:
    group = f"{protocol}-{filled.topic}"
    with ottla.Consumer[bytes, bytes](
        filled.topic,
        bootstrap_servers=cluster_under_test.bootstrap,
        group_id=group,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        client_id="reader",
    ) as consumer:
        read = 0
        while read < 5:
            read += len(consumer.poll(1.0))
        consumer.commit()
        described = admin.describe_group(group)
        assert (described.type, described.state) == (protocol, "Stable")
        [member] = described.members
        assert member.client_id == "reader"
        assert filled in member.assignment
        assert code(admin.delete_groups([group])[group]) is ErrorCode.non_empty_group
    assert group in [one.id for one in admin.list_groups(states=["Empty"])]
    assert admin.list_group_offsets(group).all()[filled].offset == 5
    admin.alter_group_offsets(group, {filled: CommittedOffset(2, None, "note")}).all()
    assert admin.list_group_offsets(group, [filled]).one() == CommittedOffset(2, None, "note")
    admin.delete_group_offsets(group, [filled]).all()
    assert filled not in admin.list_group_offsets(group)
    admin.delete_groups([group]).all()
    assert code(admin.describe_groups([group])[group]) is ErrorCode.group_id_not_found


def test_members_are_put_out(
    admin: ottla.Admin, cluster_under_test: nodes.Node, filled: TopicPartition
) -> None:
    group = f"out-{filled.topic}"
    with ottla.Consumer[bytes, bytes](
        filled.topic, bootstrap_servers=cluster_under_test.bootstrap, group_id=group
    ) as consumer:
        while not consumer.assignment():
            consumer.poll(0.1)
        members = admin.describe_group(group).members
        assert list(admin.remove_group_members(group, members, reason="test").all())
        consumer.unsubscribe()


def test_transactions(admin: ottla.Admin, cluster_under_test: nodes.Node, topic: str) -> None:
    partition, name = TopicPartition(topic, 1), f"txn-{topic}"
    with ottla.Producer(
        bootstrap_servers=cluster_under_test.bootstrap, transactional_id=name
    ) as producer:
        producer.init_transactions()
        producer.begin()
        producer.send(topic, b"open", partition=1).result(30)
        assert name in [one.id for one in admin.list_transactions(states=["Ongoing"])]
        described = admin.describe_transactions([name]).one()
        assert described.partitions == (partition,)
        [active] = admin.describe_producers([partition]).one()
        assert (active.producer_id, active.transaction_start) == (described.producer_id, 0)
        assert admin.fence_producers([name]).one().producer_epoch > described.producer_epoch
        assert admin.describe_transactions([name]).one().started_ms is None
        with pytest.raises(KafkaError):
            producer.commit()
    unknown = admin.describe_transactions(["never-used"])["never-used"]
    assert code(unknown) is ErrorCode.transactional_id_not_found


@pytest.mark.spec("TOOL-16")
def test_replicas(admin: ottla.Admin, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    [broker] = admin.describe_topic(topic).partitions[0].replicas
    for kind in ElectionKind:
        told = admin.elect_leaders([partition], kind=kind)[partition]
        assert code(told) is ErrorCode.election_not_needed
    admin.alter_partition_reassignments({partition: [broker]}).all()
    refused = admin.alter_partition_reassignments({partition: [77]})[partition]
    assert code(refused) is ErrorCode.invalid_replica_assignment
    assert admin.list_partition_reassignments([partition]) == {}


def test_disks_and_the_cluster(admin: ottla.Admin, topic: str) -> None:
    cluster = admin.describe_cluster()
    [broker] = cluster.brokers
    assert len(cluster.id) == 22
    replica = Replica(TopicPartition(topic, 0), broker.id)
    [directory] = admin.describe_log_dirs([broker.id]).one()
    eventually(lambda: admin.describe_replica_log_dirs([replica]).one().current, directory.path)
    assert admin.describe_features()["transaction.version"].finalized is not None
    assert admin.describe_api_versions(broker.id)[18][1] >= 4
