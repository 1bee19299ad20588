"""Transactions, as other people's clients do them."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import confluent_kafka as ck
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition
from kafka.errors import ProducerFencedError
from kafka.structs import OffsetAndMetadata

from tests.interop.conftest import MakeTopic
from tools import kafka_cache

DRIVER = Path(__file__).parent / "java" / "TransactionDriver.java"
WITHIN_S = 10.0


def librdkafka(bootstrap: str, id: str, **settings: object) -> ck.Producer:
    producer = ck.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": id, "linger.ms": 0, **settings}
    )
    producer.init_transactions(WITHIN_S)
    return producer


def read(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    """Everything up to the end that this reader may see."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-{isolation}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while (message := consumer.poll(WITHIN_S)) is not None:
        fault = message.error()
        if fault is not None:
            assert fault.code() == ck.KafkaError._PARTITION_EOF, fault
            consumer.close()
            return values
        values.append(message.value() or b"")
    raise AssertionError("no end of the partition was reached")


def sent(producer: ck.Producer, topic: str, value: bytes) -> None:
    producer.produce(topic, value, partition=0)
    assert producer.flush(WITHIN_S) == 0


@pytest.mark.spec("TXN-18", "TXN-46", "TXN-47", "TXN-51")
def test_readers_of_committed_data_see_what_was_committed_and_others_see_all(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = librdkafka(bootstrap, topic)
    for number in range(6):
        producer.begin_transaction()
        sent(producer, topic, b"%d" % number)
        if number % 3 == 2:
            producer.abort_transaction(WITHIN_S)
        else:
            producer.commit_transaction(WITHIN_S)
    assert read(bootstrap, topic, "read_committed") == [b"0", b"1", b"3", b"4"]
    assert read(bootstrap, topic, "read_uncommitted") == [b"%d" % n for n in range(6)]
    producer.begin_transaction()
    sent(producer, topic, b"open")
    plain = ck.Producer({"bootstrap.servers": bootstrap})
    sent(plain, topic, b"behind it")
    assert read(bootstrap, topic, "read_committed") == [b"0", b"1", b"3", b"4"]
    producer.commit_transaction(WITHIN_S)
    assert read(bootstrap, topic, "read_committed")[-2:] == [b"open", b"behind it"]


@pytest.mark.spec("TXN-17", "TXN-29")
def test_a_producer_that_began_again_elsewhere_fences_the_zombie(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    zombie = librdkafka(bootstrap, topic)
    zombie.begin_transaction()
    sent(zombie, topic, b"lost")
    newer = librdkafka(bootstrap, topic)
    with pytest.raises(ck.KafkaException) as refused:
        zombie.commit_transaction(WITHIN_S)
    assert refused.value.args[0].code() == ck.KafkaError._FENCED
    newer.begin_transaction()
    sent(newer, topic, b"kept")
    newer.commit_transaction(WITHIN_S)
    assert read(bootstrap, topic, "read_committed") == [b"kept"]


@pytest.mark.spec("TXN-42")
def test_a_transaction_left_open_is_aborted_when_its_time_is_over(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = librdkafka(bootstrap, topic, **{"transaction.timeout.ms": 1_000})
    producer.begin_transaction()
    sent(producer, topic, b"late")
    plain = ck.Producer({"bootstrap.servers": bootstrap})
    sent(plain, topic, b"behind it")
    deadline = time.monotonic() + 20  # the timeout, and the interval at which it is looked for
    while read(bootstrap, topic, "read_committed") != [b"behind it"]:
        assert time.monotonic() < deadline
    with pytest.raises(ck.KafkaException):
        producer.commit_transaction(WITHIN_S)


@pytest.mark.spec("TXN-35", "TXN-36", "TXN-50", "APP-11", "GRP-66")
@pytest.mark.parametrize("commits", [True, False])
def test_consumed_offsets_and_produced_records_count_together_or_not_at_all(
    bootstrap: str, make_topic: MakeTopic, commits: bool
) -> None:
    source, target = make_topic(), make_topic()
    plain = ck.Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        sent(plain, source, b"%d" % number)
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": source,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([source])
    taken = consumer.consume(5, WITHIN_S)
    producer = librdkafka(bootstrap, source)
    producer.begin_transaction()
    for message in taken:
        producer.produce(target, (message.value() or b"") * 2, partition=0)
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), WITHIN_S)
    producer.flush(WITHIN_S)
    if commits:
        producer.commit_transaction(WITHIN_S)
    else:
        producer.abort_transaction(WITHIN_S)
    [committed] = consumer.committed([ck.TopicPartition(source, 0)], WITHIN_S)
    consumer.close()
    doubled = [b"%d" % number * 2 for number in range(5)]
    assert read(bootstrap, target, "read_committed") == (doubled if commits else [])
    assert committed.offset == (5 if commits else ck.OFFSET_INVALID)


@pytest.mark.spec("TXN-18", "TXN-29", "TXN-35", "TXN-47")
def test_kafka_python_commits_aborts_is_fenced_and_sends_offsets(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()

    def begun() -> KafkaProducer:
        producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"python-{topic}")
        producer.init_transactions()
        return producer

    first = begun()
    for number, end in enumerate([first.commit_transaction, first.abort_transaction] * 2):
        first.begin_transaction()
        first.send(topic, b"%d" % number).get(WITHIN_S)
        end()
    assert read(bootstrap, topic, "read_committed") == [b"0", b"2"]
    second = begun()
    with pytest.raises(ProducerFencedError):
        first.begin_transaction()
        first.send(topic, b"zombie").get(WITHIN_S)
    at = KafkaPythonPartition(topic, 0)
    second.begin_transaction()
    second.send(topic, b"kept")
    second.send_offsets_to_transaction({at: OffsetAndMetadata(3, "", -1)}, topic)
    second.commit_transaction()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=topic)
    assert consumer.committed(at) == 3
    consumer.close()
    second.close()
    first.close(0)
    assert read(bootstrap, topic, "read_committed") == [b"0", b"2", b"kept"]


@pytest.mark.spec("TXN-23", "TXN-24", "TXN-25")
def test_kafkas_own_formatter_reads_what_the_coordinator_persists(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = librdkafka(bootstrap, f"formatted-{topic}")
    producer.begin_transaction()
    sent(producer, topic, b"x")
    producer.commit_transaction(WITHIN_S)
    try:
        printed = kafka_cache.run_tool(
            "kafka-console-consumer",
            "--topic", "__transaction_state", "--from-beginning", "--timeout-ms", "5000",
            "--formatter", "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter",
            "--bootstrap-server", bootstrap,
            timeout_s=60,
        )  # fmt: skip
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    ours = [one for one in printed.stdout.split('{"key"') if f"formatted-{topic}" in one]
    states = [one.split('"transactionStatus":')[1][0] for one in ours]
    assert states == ["0", "1", "2", "4"], printed.stdout + printed.stderr


@pytest.mark.spec("TXN-18", "TXN-17", "TXN-35", "TXN-46")
@pytest.mark.parametrize(("kind", "epochs"), [("clients", 6), ("clients-3.9", 0)])
def test_java_begins_each_transaction_under_a_new_epoch_if_it_knows_how(
    bootstrap: str, make_topic: MakeTopic, kind: str, epochs: int
) -> None:
    topic = make_topic(partitions=2)
    try:
        classes = kafka_cache.compiled(kind, [DRIVER])
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    command = kafka_cache.java(classes, "TransactionDriver", bootstrap, topic)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said == {
        "epochs": str(epochs),
        "committed": "8",
        "uncommitted": "12",
        "open": "Ongoing",
        "zombie": "ProducerFencedException",
        "offset": "7",
        "hanging": "0",
        "fenced": "ProducerFencedException",
    }, done.stderr[-2_000:]
