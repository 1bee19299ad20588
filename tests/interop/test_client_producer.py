"""Our producer against Apache Kafka and against Ottla, judged by what librdkafka reads."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer as ConfluentProducer

import ottla
import ottla.aio
from ottla.client.producer.delivery import Delivery
from tests.interop.producer_rig import committed, new_topic, read, wait_for_end
from tools.nodes import Node

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
STAMP_MS = 1_700_000_000_123


@pytest.mark.spec("PRD-01", "PRD-03", "PRD-04", "PRD-10")
def test_a_record_arrives_as_it_was_sent(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap, 2, {"message.timestamp.before.max.ms": str(1 << 62)})
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)]
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        first = producer.send(
            topic, b"value", b"key", headers=headers, partition=1, timestamp_ms=STAMP_MS
        )
        tombstone = producer.send(topic, None, b"key", partition=1, timestamp_ms=STAMP_MS + 1)
        sent = first.result(60)
        assert tombstone.result(60).offset == 1
    assert sent == (topic, 1, 0, STAMP_MS)
    [one, two] = read(bootstrap, topic)
    assert (one.partition, one.offset, one.key, one.value) == (1, 0, b"key", b"value")
    assert one.timestamp == (1, STAMP_MS)
    assert one.headers == tuple(headers)
    assert (two.key, two.value, two.headers) == (b"key", None, ())


@pytest.mark.spec("PRD-03", "PRD-23", "PRD-54", "PRD-57")
def test_callbacks_come_in_the_order_of_the_records_and_flush_waits_for_all(
    cluster_under_test: Node,
) -> None:
    topic = new_topic(cluster_under_test.bootstrap)
    offsets: list[int] = []
    with ottla.Producer(
        bootstrap_servers=cluster_under_test.bootstrap, batch_size=500, linger_ms=1
    ) as producer:
        for number in range(500):
            delivery = producer.send(topic, b"%d" % number)
            delivery.add_done_callback(lambda done: offsets.append(done.result(0).offset))
        producer.flush(60)
        assert offsets == list(range(500))
        assert producer.metrics()["record-send-total"] == 500


@pytest.mark.spec("PRD-14")
def test_keys_go_where_other_clients_send_them(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    ours, theirs = new_topic(bootstrap, 12), new_topic(bootstrap, 12)
    keys = [b"%d" % number for number in range(300)] + [
        b"",
        b"\xff\xfe\xfd",
        b"a key of some length",
    ]
    other = ConfluentProducer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        for key in keys:
            producer.send(ours, b"", key)
            other.produce(theirs, b"", key)
    other.flush(60)
    assert {(seen.partition, seen.key) for seen in read(bootstrap, ours)} == {
        (seen.partition, seen.key) for seen in read(bootstrap, theirs)
    }


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_understood(cluster_under_test: Node, codec: str) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap)
    values = [b"%d " % number * 20 for number in range(2_000)]
    with ottla.Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        for value in values:
            producer.send(topic, value)
    assert [seen.value for seen in read(bootstrap, topic)] == values


@pytest.mark.spec("PRD-41", "PRD-56", "TXN-04")
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks_say_how_much_is_known_of_a_record(cluster_under_test: Node, acks: str) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap)
    with ottla.Producer(bootstrap_servers=bootstrap, acks=acks) as producer:
        offsets = [producer.send(topic, b"%d" % number).result(60).offset for number in range(3)]
        last = producer.send(topic, b"last", partition=0)
        last.result(60)
    assert offsets == ([-1, -1, -1] if acks == "0" else [0, 1, 2])
    wait_for_end(bootstrap, topic, 4)  # some are on their way still, of which nobody hears
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        assert producer.send(topic, b"after").result(60).offset == 4
    assert [seen.value for seen in read(bootstrap, topic)] == [b"0", b"1", b"2", b"last", b"after"]


@pytest.mark.spec("PRD-04")
def test_where_the_broker_stamps_records_its_time_is_told(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap, 1, {"message.timestamp.type": "LogAppendTime"})
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        sent = producer.send(topic, b"now", timestamp_ms=STAMP_MS).result(60)
    [seen] = read(bootstrap, topic)
    assert seen.timestamp == (2, sent.timestamp)
    assert sent.timestamp > STAMP_MS


@pytest.mark.spec("PRD-53")
def test_a_batch_that_is_too_large_goes_in_parts_and_in_order(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap, 1, {"max.message.bytes": "3000"})
    with ottla.Producer(bootstrap_servers=bootstrap, batch_size=200_000, linger_ms=100) as producer:
        deliveries = [producer.send(topic, b"%4d" % number * 50) for number in range(200)]
        hopeless = producer.send(topic, b"x" * 5_000)
        behind = [producer.send(topic, b"%4d" % number * 50) for number in range(200, 210)]
        assert [each.result(60).offset for each in deliveries + behind] == list(range(210))
        assert isinstance(hopeless.exception(60), ottla.RecordTooLarge)
    assert [seen.value for seen in read(bootstrap, topic)] == [
        b"%4d" % number * 50 for number in range(210)
    ]


@pytest.mark.spec("PRD-13")
def test_a_topic_that_cannot_be_is_told_through_the_future(cluster_under_test: Node) -> None:
    with ottla.Producer(bootstrap_servers=cluster_under_test.bootstrap) as producer:
        error = producer.send("no such/topic", b"").exception(60)
        assert isinstance(error, ottla.KafkaError)
        assert error.code is ottla.ErrorCode.invalid_topic_exception


@pytest.mark.spec("PRD-02", "PRD-22")
def test_many_threads_share_a_producer_and_each_keeps_its_order(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap)
    with ottla.Producer(bootstrap_servers=bootstrap, batch_size=2_000) as producer:

        def work(name: int) -> None:
            for number in range(400):
                producer.send(topic, b"%d %d" % (name, number))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    values = [seen.value or b"" for seen in read(bootstrap, topic)]
    for name in range(4):
        mine = [value for value in values if value.startswith(b"%d " % name)]
        assert mine == [b"%d %d" % (name, number) for number in range(400)]


@pytest.mark.spec("TXN-17", "TXN-18", "TXN-48", "TXN-49", "TXN-51", "TXN-52")
def test_a_transaction_is_seen_whole_or_not_at_all(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap, 3)
    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            for number in range(30):
                producer.send(topic, b"kept %d" % number, b"%d" % number)
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"lost", partition=0).result(60)
            raise ZeroDivisionError
        producer.begin()
        unsent = producer.send(topic, b"lost too", partition=1)
        producer.abort()
        assert unsent.done()
        with producer.transaction():
            producer.send(topic, b"kept at the end", partition=2)
    values = {seen.value for seen in read(bootstrap, topic)}
    assert values == {*(b"kept %d" % number for number in range(30)), b"kept at the end"}
    assert b"lost" in {seen.value for seen in read(bootstrap, topic, isolation="read_uncommitted")}


@pytest.mark.spec("TXN-17", "TXN-52")
def test_a_second_producer_with_the_same_name_shuts_out_the_first(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap)
    options: dict[str, Any] = {"bootstrap_servers": bootstrap, "transactional_id": topic}
    with ottla.Producer(**options) as first, ottla.Producer(**options) as second:
        first.init_transactions()
        first.begin()
        first.send(topic, b"of the first").result(60)
        second.init_transactions()
        with second.transaction():
            second.send(topic, b"of the second")
        with pytest.raises((ottla.Fenced, ottla.AbortNeeded)):
            first.send(topic, b"too late")
            first.commit()
        with pytest.raises(ottla.Fenced):
            first.abort()
        with pytest.raises(ottla.Fenced):
            first.begin()
    assert [seen.value for seen in read(bootstrap, topic)] == [b"of the second"]


@pytest.mark.spec("TXN-35", "TXN-36", "TXN-50")
def test_offsets_are_committed_with_the_transaction_or_not_at_all(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap)
    place = ottla.TopicPartition(topic, 0)
    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"out")
            producer.send_offsets({place: 5}, topic)
        assert committed(bootstrap, topic, topic) == 5
        producer.begin()
        producer.send_offsets({place: 9}, topic)
        producer.abort()
        assert committed(bootstrap, topic, topic) == 5
        with producer.transaction():
            producer.send_offsets({place: 7}, topic)
        assert committed(bootstrap, topic, topic) == 7


@pytest.mark.real_loop
async def test_the_asynchronous_face_does_the_same(cluster_under_test: Node) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap, 2)
    async with ottla.aio.Producer(
        bootstrap_servers=bootstrap, transactional_id=topic, batch_size=1_000
    ) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            deliveries: list[Delivery] = []
            for number in range(200):
                deliveries.append(await producer.send(topic, b"%d" % number, partition=0))
            places = [await each for each in deliveries]
            assert [place.offset for place in places] == list(range(200))
            await producer.send_offsets({ottla.TopicPartition(topic, 0): 3}, topic)
        assert len(await producer.partitions_for(topic)) == 2
        producer.begin()
        await producer.send(topic, b"lost")
        await producer.abort()
    assert [seen.value for seen in read(bootstrap, topic)] == [b"%d" % n for n in range(200)]
    assert committed(bootstrap, topic, topic) == 3


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_table_is_sent_whole_and_its_keys_keep_their_order(
    cluster_under_test: Node, codec: str
) -> None:
    bootstrap = cluster_under_test.bootstrap
    topic = new_topic(bootstrap, 3)
    rows = 5_000
    table = pa.table(
        {
            "k": [b"%d" % (row % 7) for row in range(rows)],
            "v": [None if row % 10 == 0 else f"value {row}" for row in range(rows)],
            "t": pa.array([STAMP_MS + row for row in range(rows)], pa.timestamp("ms")),
            "h": [[{"key": "row", "value": b"%d" % row}] for row in range(rows)],
        }
    )
    with ottla.Producer(
        bootstrap_servers=bootstrap, batch_size=20_000, compression_type=codec
    ) as producer:
        delivery = producer.send_arrow(topic, table, key="k", value="v", timestamp="t", headers="h")
        ranges = delivery.result(60)
        one_by_one = producer.send(topic, b"", b"3").result(60).partition
    assert sum(each.records for each in ranges) == rows == len(delivery)
    seen = read(bootstrap, topic)
    assert len(seen) == rows + 1
    assert {each.partition for each in seen if each.key == b"3"} == {one_by_one}
    for key in {each.key for each in seen}:
        mine = [int(each.headers[0][1] or b"") for each in seen if each.key == key and each.headers]
        assert mine == sorted(mine)
    row = next(each for each in seen if each.headers == (("row", b"123"),))
    assert (row.value, row.timestamp[1]) == (b"value 123", STAMP_MS + 123)
    assert next(each for each in seen if each.headers == (("row", b"10"),)).value is None
