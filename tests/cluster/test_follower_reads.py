"""Three broker processes in three racks: consumers read from the follower of theirs."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

import ottla
from ottla.config.replication import RACK_AWARE_SELECTOR
from tests.cluster.load import produce
from tests.cluster.process import BrokerProcess, wait_for
from tests.cluster.replicated_topics import create, everyone, in_sync
from tests.store.zookeeper_server import Server, zookeeper_server
from tools import kafka_cache
from tools.nodes import free_ports

TOPIC = "orders"
NAMES = [f"record {number}" for number in range(500)]
SENT = "kafka_server_brokertopicmetrics_all_topics_bytes_out_total"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture(scope="module")
def brokers(
    server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[BrokerProcess]]:
    folder = tmp_path_factory.mktemp("racks")
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(
                BrokerProcess(
                    folder / str(number),
                    {
                        "zookeeper.session.timeout.ms": "2000",
                        "min.insync.replicas": "2",
                        "offsets.topic.num.partitions": "1",
                        "replica.selector.class": RACK_AWARE_SELECTOR,
                        "broker.id": str(number),
                        "broker.rack": f"rack-{number}",
                        "metrics.port": str(free_ports(1, "127.0.0.1")[0]),
                        "zookeeper.connect": f"{server.address}/{folder.name}",
                    },
                )
            )
            for number in range(3)
        ]
        create(everyone(brokers), TOPIC, 1)
        produce(everyone(brokers), TOPIC, NAMES)
        yield brokers


def sent_by(broker: BrokerProcess) -> float:
    """Bytes that a broker has sent to consumers."""
    address = f"http://127.0.0.1:{broker.settings['metrics.port']}/metrics"
    with urllib.request.urlopen(address, timeout=10) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(SENT + " "):
                return float(line.split()[1])
    return 0.0


def read_with_librdkafka(address: str, rack: str) -> int:
    settings = {"bootstrap.servers": address, "group.id": "g", "client.rack": rack}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    count = 0
    while count < len(NAMES):
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        count += 1
    consumer.close()
    return count


def read_with_ottla(address: str, rack: str) -> int:
    with ottla.Consumer(bootstrap_servers=address, client_rack=rack) as consumer:
        tp = ottla.TopicPartition(TOPIC, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        count = 0
        while count < len(NAMES):
            polled = consumer.poll(30)
            assert polled
            count += len(polled)
        return count


def read_with_java(address: str, rack: str) -> int:
    try:
        command = kafka_cache.tool("kafka-console-consumer")
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    done = subprocess.run(
        [
            *command, "--bootstrap-server", address, "--topic", TOPIC, "--from-beginning",
            "--max-messages", str(len(NAMES)), "--timeout-ms", "60000",
            "--consumer-property", f"client.rack={rack}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return sum(line.startswith("record ") for line in done.stdout.splitlines())


@pytest.mark.parametrize("read", [read_with_librdkafka, read_with_ottla, read_with_java])
def test_a_client_reads_from_the_follower_of_its_rack(
    brokers: list[BrokerProcess], read: Callable[[str, str], int]
) -> None:
    address = everyone(brokers)
    leader, isr = in_sync(address, TOPIC)[0]
    assert isr == [0, 1, 2]
    near = (leader + 1) % 3
    before = [sent_by(broker) for broker in brokers]
    assert read(address, f"rack-{near}") == len(NAMES)

    def sent() -> list[float]:
        return [sent_by(broker) - was for broker, was in zip(brokers, before, strict=True)]

    # A page of metrics may be a moment old.
    wait_for(lambda: sum(sent()) > 100 * len(NAMES), what="the metrics show what was read")
    assert sent()[leader] < sent()[near] / 10


def test_scenario_26_a_reader_of_a_follower_sees_every_record_across_a_change_of_leader(
    brokers: list[BrokerProcess],
) -> None:
    """No gap, nothing twice."""
    address = everyone(brokers)
    leader, _ = in_sync(address, TOPIC)[0]
    near = (leader + 1) % 3
    with ottla.Consumer(bootstrap_servers=address, client_rack=f"rack-{near}") as consumer:
        tp = ottla.TopicPartition(TOPIC, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        offsets: list[int] = []
        while len(offsets) < len(NAMES):
            offsets += [record.offset for record in consumer.poll(30)]
        brokers[leader].kill()
        produce(address, TOPIC, NAMES)
        while len(offsets) < 2 * len(NAMES):
            offsets += [record.offset for record in consumer.poll(30)]
        assert offsets == list(range(2 * len(NAMES)))
    brokers[leader].start()
    wait_for(lambda: in_sync(address, TOPIC)[0][1] == [0, 1, 2], what="all are in sync again")
