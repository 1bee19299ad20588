"""Transactions, as other people's clients do them."""

from __future__ import annotations

import asyncio
import subprocess
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import aiokafka
import confluent_kafka as ck
import pytest
from aiokafka.errors import KafkaError as AiokafkaError
from aiokafka.errors import ProducerFenced as AiokafkaFenced
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.errors import ProducerFencedError
from kafka.structs import OffsetAndMetadata

from tests.interop.conftest import MakeTopic
from tests.interop.kafka_python_settings import JOIN_POLL_MS, METADATA_MAX_AGE_MS, subscribe
from tests.raw_requests import FETCH, Line, fetch_fields
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
        opened.callback(producer.close, WITHIN_S)
        producer.init_transactions()
        return producer

    with ExitStack() as opened:
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
        with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=topic)) as consumer:
            assert consumer.committed(at) == 3
    assert read(bootstrap, topic, "read_committed") == [b"0", b"2", b"kept"]


@pytest.mark.spec("TXN-35", "TXN-36", "TXN-42", "TXN-50")
def test_kafka_python_pipes_with_its_groups_metadata_and_keeps_to_its_time(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    source, target = make_topic(), make_topic()
    plain = ck.Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        sent(plain, source, b"%d" % number)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=source,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
    )
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=source, transaction_timeout_ms=1_000
    )
    at = KafkaPythonPartition(source, 0)
    with ExitStack() as opened:
        opened.callback(producer.close, WITHIN_S)
        with closing(consumer):
            subscribe(consumer, source)
            taken: list[bytes] = []
            deadline = time.monotonic() + 30
            while len(taken) < 5:
                assert time.monotonic() < deadline, "waited 30 s for five records"
                for records in consumer.poll(JOIN_POLL_MS).values():
                    taken += [record.value for record in records]
            producer.init_transactions()
            for end in (producer.abort_transaction, producer.commit_transaction):
                producer.begin_transaction()
                for value in taken:
                    producer.send(target, value * 2)
                offsets = {at: OffsetAndMetadata(5, "", -1)}
                producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                end()
            assert consumer.committed(at) == 5
        producer.begin_transaction()
        producer.send(target, b"late").get(WITHIN_S)
        timed_out(bootstrap, target)
        with pytest.raises(KafkaPythonError):
            producer.commit_transaction()
    assert read(bootstrap, target, "read_committed") == [value * 2 for value in taken]


def timed_out(bootstrap: str, topic: str) -> None:
    """Wait until no open transaction holds readers of committed data up before the end."""
    fields = {**fetch_fields(topic), "isolation_level": 1}
    deadline = time.monotonic() + 30
    with Line(bootstrap) as line:
        while True:
            [part] = line.ask(FETCH, 12, **fields).responses[0].partitions
            if part.last_stable_offset == part.high_watermark:
                return
            assert time.monotonic() < deadline, "it was never aborted"


@pytest.mark.spec("TXN-17", "TXN-18", "TXN-29", "TXN-35", "TXN-42", "TXN-46", "TXN-47")
@pytest.mark.real_loop
async def test_aiokafka_commits_aborts_pipes_is_fenced_and_keeps_to_its_time(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    at = aiokafka.TopicPartition(topic, 0)

    async def begun(timeout_ms: int = 60_000) -> aiokafka.AIOKafkaProducer:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=f"aiokafka-{topic}",
            transaction_timeout_ms=timeout_ms,
        )
        await producer.start()
        return producer

    # aiokafka forgets futures of a producer that is fenced. They would be complained of, with a
    # traceback, whenever the collector finds them: within a parse that breaks Python 3.11.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    first = await begun()
    for number in range(4):
        await first.begin_transaction()
        await first.send_and_wait(topic, b"%d" % number)
        await first.send_offsets_to_transaction({at: number + 1}, topic)
        await (first.abort_transaction() if number % 2 else first.commit_transaction())
    second = await begun(timeout_ms=1_000)
    with pytest.raises(AiokafkaFenced):
        await first.begin_transaction()
        await first.send_and_wait(topic, b"zombie")
    await second.begin_transaction()
    await second.send_and_wait(topic, b"late")
    await asyncio.to_thread(timed_out, bootstrap, topic)
    with pytest.raises(AiokafkaError):
        await second.commit_transaction()
    for producer in (first, second):
        with suppress(AiokafkaError):
            await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=topic)
    await consumer.start()
    assert await consumer.committed(at) == 3  # of the last that was committed
    await consumer.stop()
    assert read(bootstrap, topic, "read_committed") == [b"0", b"2"]
    assert read(bootstrap, topic, "read_uncommitted") == [b"0", b"1", b"2", b"3", b"late"]


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
        "piped": "nothing,true",
        "late": "ProducerFencedException",
        "hanging": "0",
        "fenced": "ProducerFencedException",
    }, done.stderr[-2_000:]
