"""What a reader that wants only committed records sees, asked of somebody else's client."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition


def committed(servers: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Partition, key and value of every record up to the last stable offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "test-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        found, open_ends = [], set(partitions)
        while open_ends:
            message = consumer.poll(30)
            assert message is not None, f"{topic} does not come to its end"
            if message.error() is not None:
                open_ends.discard(message.partition())
            else:
                partition = message.partition()
                assert partition is not None
                found.append((partition, message.key(), message.value()))
        return found
    finally:
        consumer.close()


def committed_values(servers: str, topic: str) -> list[bytes | None]:
    return [value for _, _, value in committed(servers, topic)]
