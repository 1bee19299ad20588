"""A broker that is killed under our consumer, and comes back: nothing is lost, nothing doubled."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

import ottla
from tests.interop.consumer_cluster import WAIT_S, read, values
from tools import nodes


@pytest.mark.spec("CON-17", "CON-19", "CON-28")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_broker_that_is_killed_and_restarted_is_read_on_from(
    tmp_path: Path, protocol: str
) -> None:
    (port,) = nodes.free_ports(1)
    bootstrap = f"127.0.0.1:{port}"
    node = nodes.start_ottla(tmp_path, port=port)
    try:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(WAIT_S)
        soon = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200}
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **soon})

        def write(first: int) -> None:
            for number in range(first, first + 50):
                producer.produce("t", str(number), partition=number % 2)
            assert producer.flush(WAIT_S) == 0

        with ottla.Consumer(
            "t",
            bootstrap_servers=bootstrap,
            group_id="g",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            write(0)
            got = read(consumer, 50)
            node.process.kill()
            node.process.wait()
            assert consumer.poll(1.0) == [], "a broker that is away is no error"
            node = nodes.start_ottla(tmp_path, port=port)
            write(50)
            got += read(consumer, 50)
            assert sorted(values(got)) == list(range(100))
            assert consumer.poll(0.5) == []
            consumer.commit()
            committed = consumer.committed(consumer.assignment())
            assert sum(place.offset for place in committed.values()) == 100
    finally:
        nodes.stop(node)
