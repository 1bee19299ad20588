"""Topics with three replicas: creating them, and which replicas are in sync."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.cluster.process import BrokerProcess


def everyone(brokers: list[BrokerProcess]) -> str:
    return ",".join(broker.address for broker in brokers)


def create(address: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    [creation] = admin.create_topics([NewTopic(topic, partitions, 3)]).values()
    creation.result(30)


def in_sync(address: str, topic: str) -> dict[int, tuple[int, list[int]]]:
    """Leader and in-sync replicas of each partition."""
    metadata = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=10)
    partitions = metadata.topics[topic].partitions
    return {
        number: (partition.leader, sorted(partition.isrs))
        for number, partition in partitions.items()
    }
