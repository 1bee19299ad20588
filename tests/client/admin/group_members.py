"""A member of a group, by librdkafka, for tests of what administrators see."""

from __future__ import annotations

from confluent_kafka import Consumer

from ottla.testing import Broker


def joined(broker: Broker, topic: str, **settings: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "group.protocol": "classic",
            "client.id": "reader",
            "log_level": 2,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    return consumer
