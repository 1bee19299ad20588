"""Our consumer reads from Ottla and from Apache Kafka: one suite, the same promises."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # not declared so

import ottla
from ottla import (
    ConcurrentUse,
    ConsumerInterceptor,
    NoOffset,
    OffsetOutOfRange,
    Record,
    TopicPartition,
    Wakeup,
)
from tests.interop.consumer_cluster import (
    WAIT_S,
    Bytes,
    Site,
    numbers,
    partitions,
    read,
    until,
    values,
)


@pytest.mark.spec("CON-06", "CON-07", "CON-08", "CON-12", "CON-16")
def test_the_first_poll_joins_and_records_carry_everything(site: Site, group: str) -> None:
    topic = site.topic()
    site.producer.produce(topic, "v", "k", partition=1, timestamp=1_700_000_000_123,
                          headers=[("h", b"1"), ("none", None)])  # fmt: skip
    assert site.producer.flush(WAIT_S) == 0  # a retry could put the first behind the second
    site.producer.produce(topic, None, None, partition=1, timestamp=1_700_000_000_124)
    assert site.producer.flush(WAIT_S) == 0
    with site.consumer(topic, group_id=group) as consumer:
        first, second = read(consumer, 2)
        assert consumer.assignment() == partitions(topic)
    assert first[:7] == (topic, 1, 0, 1_700_000_000_123, 0, b"k", b"v")
    assert first.headers == (("h", b"1"), ("none", None))
    assert (second.offset, second.key, second.value) == (1, None, None)


@pytest.mark.spec("TXN-02")
@pytest.mark.parametrize(
    ("commits_first", "handled"),
    [(True, [0, 1, 6]), (False, [0, 1, 0, 1, 2, 3, 4, 5, 6])],
    ids=["at most once", "at least once"],
)
def test_the_order_of_commit_and_processing_decides_what_a_death_costs(
    site: Site, group: str, commits_first: bool, handled: list[int]
) -> None:
    topic = site.topic(partitions=1, records=6)
    done: list[int] = []
    with site.consumer(topic, group_id=group, enable_auto_commit=False) as consumer:
        taken = values(read(consumer, 6))
        if commits_first:
            consumer.commit()
        done += taken[:2]  # and here it dies: a commit that comes last never does
    site.write(topic, [6], partitions=1)
    with site.consumer(topic, group_id=group, enable_auto_commit=False) as consumer:
        done += values(read(consumer, len(handled) - 2))
        consumer.commit()
    assert done == handled


@pytest.mark.spec("CON-06")
def test_a_poll_ends_with_its_timeout(site: Site, group: str) -> None:
    with site.consumer(site.topic(), group_id=group) as consumer:
        began = time.monotonic()
        assert consumer.poll(0.3) == []
        assert 0.25 < time.monotonic() - began < WAIT_S
        assert consumer.poll(0) == []


@pytest.mark.spec("CON-01", "CON-02", "CON-04")
def test_subscribing_replaces_and_unsubscribing_leaves(site: Site, group: str) -> None:
    one, two = site.topic(records=3), site.topic(records=3)
    with site.consumer(group_id=group) as consumer:
        consumer.subscribe([one])
        assert {record.topic for record in read(consumer, 3)} == {one}
        consumer.subscribe([two])
        assert {record.topic for record in read(consumer, 3)} == {two}
        assert consumer.assignment() == partitions(two)
        with pytest.raises(ottla.UserError, match="unsubscribe"):
            consumer.assign([TopicPartition(one, 0)])
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()
        with pytest.raises(ottla.UserError, match="subscribe"):
            consumer.poll(0)


@pytest.mark.spec("CON-01")
def test_a_pattern_takes_topics_that_come_later(site: Site, group: str) -> None:
    stem = f"family-{next(numbers)}"
    site.admin.create_topics([NewTopic(f"{stem}-a", 1, 1)])[f"{stem}-a"].result(WAIT_S)
    with site.consumer(group_id=group, metadata_max_age_ms=200) as consumer:
        consumer.subscribe(pattern=f"^{stem}-")
        until(lambda: consumer.assignment() == {TopicPartition(f"{stem}-a", 0)}, consumer)
        site.admin.create_topics([NewTopic(f"{stem}-b", 1, 1)])[f"{stem}-b"].result(WAIT_S)
        until(lambda: len(consumer.assignment()) == 2, consumer)
        assert consumer.subscription() == {f"{stem}-a", f"{stem}-b"}


@pytest.mark.spec("CON-03")
def test_assigned_partitions_are_read_and_no_others(site: Site) -> None:
    topic = site.topic(records=30)
    with site.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 1)])
        got = read(consumer, 10)
        assert {record.partition for record in got} == {1}
        assert consumer.poll(0.2) == []


def test_a_consumer_without_a_group_reads_everything(site: Site) -> None:
    topic = site.topic(records=30)
    with site.consumer(topic) as consumer:
        assert sorted(values(read(consumer, 30))) == list(range(30))
        with pytest.raises(ottla.UserError, match="group_id="):
            consumer.commit()


@pytest.mark.spec("CON-09", "CON-10")
def test_seeking_by_offset_start_end_and_time(site: Site) -> None:
    topic = site.topic(1)
    tp = TopicPartition(topic, 0)
    base = int(time.time() * 1000) - 100_000
    for number in range(10):
        site.producer.produce(topic, str(number), partition=0, timestamp=base + number * 1000)
    site.producer.flush(WAIT_S)
    with site.consumer() as consumer:
        with pytest.raises(ottla.UserError, match="not assigned"):
            consumer.seek(tp, 4)
        consumer.assign([tp])
        consumer.seek(tp, 4)
        assert values(read(consumer, 2)) == [4, 5]
        consumer.seek_to_beginning(tp)
        assert values(read(consumer, 1)) == [0]
        found = consumer.offsets_for_times({tp: base + 6_500})[tp]
        assert found is not None
        assert (found.offset, found.timestamp) == (7, base + 7_000)
        assert consumer.offsets_for_times({tp: base + 99_000}) == {tp: None}
        consumer.seek(tp, found.offset)
        assert values(read(consumer, 3)) == [7, 8, 9]
        consumer.seek_to_time(base + 2_000)
        assert values(read(consumer, 1)) == [2]
        consumer.seek_to_end(tp)
        assert consumer.position(tp) == 10
        site.write(topic, [42], 1)
        assert values(read(consumer, 1)) == [42]
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets([tp]) == {tp: 11}
        assert consumer.lag(tp) == 0


@pytest.mark.spec("CON-11")
def test_paused_partitions_deliver_nothing_until_they_are_resumed(site: Site, group: str) -> None:
    topic = site.topic(2, records=0)
    quiet, loud = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with site.consumer(topic, group_id=group) as consumer:
        until(lambda: len(consumer.assignment()) == 2, consumer)
        consumer.pause(quiet)
        assert consumer.paused() == {quiet}
        site.write(topic, range(20), 2)
        assert {record.partition for record in read(consumer, 10)} == {1}
        assert consumer.poll(0.2) == []
        consumer.resume(quiet)
        assert {record.partition for record in read(consumer, 10)} == {0}
        assert consumer.assignment() == {quiet, loud}


@pytest.mark.spec("CON-12", "CFG-110")
@pytest.mark.parametrize(("policy", "seen"), [("earliest", [0, 1, 9]), ("latest", [9])])
def test_without_an_offset_reading_begins_where_the_policy_says(
    site: Site, group: str, policy: str, seen: list[int]
) -> None:
    topic = site.topic(1, records=2)
    with site.consumer(topic, group_id=group, auto_offset_reset=policy) as consumer:
        got = until(lambda: bool(consumer.assignment()), consumer)
        consumer.position(TopicPartition(topic, 0))
        site.write(topic, [9], 1)
        got += read(consumer, len(seen) - len(got))
        assert values(got) == seen


@pytest.mark.spec("CON-12")
def test_without_an_offset_and_a_policy_the_user_decides(site: Site, group: str) -> None:
    topic = site.topic(1, records=3)
    tp = TopicPartition(topic, 0)
    with site.consumer(topic, group_id=group, auto_offset_reset="none") as consumer:
        for _ in range(2):  # every poll says so
            with pytest.raises(NoOffset, match="=none: seek first"):
                until(lambda: False, consumer)
        consumer.seek(tp, 1)
        assert values(read(consumer, 2)) == [1, 2]
        consumer.seek(tp, 99)
        with pytest.raises(OffsetOutOfRange, match="99"):
            until(lambda: False, consumer)
        consumer.seek(tp, 2)
        assert values(read(consumer, 1)) == [2]


@pytest.mark.spec("CON-12")
def test_an_offset_out_of_range_is_reset(site: Site) -> None:
    topic = site.topic(1, records=5)
    with site.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 1_000)
        assert values(read(consumer, 5)) == [0, 1, 2, 3, 4]


def test_a_policy_may_be_a_duration(site: Site) -> None:
    topic = site.topic(1)
    now = int(time.time() * 1000)
    for hours in (3, 2, 1, 0):
        stamp = now - hours * 3_600_000
        site.producer.produce(topic, str(hours), partition=0, timestamp=stamp)
    site.producer.flush(WAIT_S)
    with site.consumer(topic, auto_offset_reset="by_duration:PT1H30M") as consumer:
        assert values(read(consumer, 2)) == [1, 0]


@pytest.mark.spec("CON-13", "CON-14", "CFG-112", "CFG-113", "CFG-114", "CFG-115")
def test_small_limits_and_a_batch_larger_than_all_of_them(site: Site) -> None:
    topic = site.topic(1)
    big = b"x" * 300_000
    site.producer.produce(topic, big, partition=0)
    site.producer.flush(WAIT_S)
    site.write(topic, range(3), 1)
    limits = {"max_partition_fetch_bytes": 1_000, "fetch_max_bytes": 2_000, "fetch_max_wait_ms": 50}
    with site.consumer(topic, fetch_min_bytes=1, **limits) as consumer:
        got = read(consumer, 4)
    assert [record.value for record in got] == [big, b"0", b"1", b"2"]


@pytest.mark.spec("CON-15", "CFG-117")
def test_a_poll_gives_no_more_than_was_asked_for_and_the_rest_is_kept(site: Site) -> None:
    topic = site.topic(1, records=250)
    with site.consumer(topic, max_poll_records=100) as consumer:
        sizes, got = [], list[Bytes]()
        while len(got) < 250:
            records = consumer.poll(WAIT_S)
            sizes.append(len(records))
            got += records
        assert max(sizes) <= 100
        assert values(got) == list(range(250))
        assert consumer.metrics()["records-consumed-total"] == 250


@pytest.mark.spec("CON-18", "CFG-111")
def test_read_committed_sees_no_aborted_record_and_nothing_that_is_open(site: Site) -> None:
    topic = site.topic(1)
    writer = Producer(
        {"bootstrap.servers": site.bootstrap, "transactional.id": f"tx-{next(numbers)}"}
    )
    writer.init_transactions(WAIT_S)
    for number, commits in ((0, True), (1, False), (2, True)):
        writer.begin_transaction()
        writer.produce(topic, str(number), partition=0)
        assert writer.flush(WAIT_S) == 0
        if commits:
            writer.commit_transaction(WAIT_S)
        else:
            writer.abort_transaction(WAIT_S)
    writer.begin_transaction()
    writer.produce(topic, "3", partition=0)
    assert writer.flush(WAIT_S) == 0
    with (
        site.consumer(topic, isolation_level="read_committed") as careful,
        site.consumer(topic) as bold,
    ):
        assert values(read(careful, 2)) == [0, 2]
        assert careful.poll(0.2) == []
        assert values(read(bold, 4)) == [0, 1, 2, 3]
        writer.commit_transaction(WAIT_S)
        assert values(read(careful, 1)) == [3]


@pytest.mark.spec("CON-49")
def test_a_second_thread_is_told_who_is_inside(site: Site) -> None:
    topic = site.topic(1)
    with site.consumer(topic) as consumer:
        inside = threading.Event()
        complaints: list[str] = []

        def meddle() -> None:
            inside.wait()
            try:
                consumer.poll(0)
            except ConcurrentUse as complaint:
                complaints.append(str(complaint))
            consumer.wakeup()

        consumer.poll(0)
        meddler = threading.Thread(target=meddle, name="meddler")
        meddler.start()
        inside.set()
        with pytest.raises(Wakeup):
            while True:
                consumer.poll(WAIT_S)
        meddler.join()
        if complaints:  # it was quick enough to meet us
            assert "'meddler'" in complaints[0]
            assert repr(threading.current_thread().name) in complaints[0]


@pytest.mark.spec("CON-50")
def test_wakeup_ends_a_poll_that_waits_and_the_next_one(site: Site) -> None:
    with site.consumer(site.topic(1)) as consumer:
        threading.Timer(0.2, consumer.wakeup).start()
        with pytest.raises(Wakeup):
            consumer.poll(WAIT_S)
        consumer.wakeup()
        with pytest.raises(Wakeup):
            consumer.poll(0)
        assert consumer.poll(0) == []


@pytest.mark.spec("CON-53", "CFG-088")
def test_interceptors_see_records_before_and_commits_after(site: Site, group: str) -> None:
    topic = site.topic(1, records=10)

    class EvenOnly(ConsumerInterceptor):
        committed = 0

        def on_consume(self, records: list[Record[Any, Any]]) -> list[Record[Any, Any]]:
            return [record for record in records if int(record.value or b"") % 2 == 0]

        def on_commit(self, offsets: Any) -> None:
            self.committed = offsets[TopicPartition(topic, 0)].offset

    one = EvenOnly()
    with site.consumer(
        topic, group_id=group, interceptors=[one], enable_auto_commit=False
    ) as consumer:
        assert values(read(consumer, 5)) == [0, 2, 4, 6, 8]
        consumer.commit()
        assert one.committed == consumer.position(TopicPartition(topic, 0)) >= 9


@pytest.mark.spec("CON-16", "CFG-082")
def test_deserializers_and_what_they_cannot_read(site: Site) -> None:
    topic = site.topic(1)
    for value in ("1", "2", "x", "4"):
        site.producer.produce(topic, value, "key", partition=0)
    site.producer.flush(WAIT_S)
    consumer = ottla.Consumer(
        topic,
        bootstrap_servers=site.bootstrap,
        auto_offset_reset="earliest",
        key_deserializer=bytes.decode,
        value_deserializer=int,
    )
    with consumer:
        got: list[Record[str, int]] = []
        with pytest.raises(ottla.SerializationError, match=r"cannot deserialize .* at offset 2"):
            while True:
                got += consumer.poll(WAIT_S)
        assert [(record.key, record.value) for record in got] == [("key", 1), ("key", 2)]
        consumer.seek(TopicPartition(topic, 0), 3)
        assert [record.value for record in consumer.poll(WAIT_S)] == [4]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_as_objects_and_as_columns(site: Site, codec: str) -> None:
    topic = site.topic(2)
    producer = Producer({"bootstrap.servers": site.bootstrap, "compression.type": codec})
    for number in range(500):
        producer.produce(
            topic, f"value {number}", str(number), partition=number % 2, headers={"n": str(number)}
        )
    assert producer.flush(WAIT_S) == 0
    with site.consumer(topic) as consumer:
        got = read(consumer, 500)
        assert sorted(int(record.key or b"") for record in got) == list(range(500))
        consumer.seek_to_beginning()
        rows: list[dict[str, Any]] = []
        while len(rows) < 500:
            rows += consumer.poll_arrow(WAIT_S, headers=True).to_pylist()
    assert {
        (row["topic"], row["partition"], row["offset"], row["key"], row["value"]) for row in rows
    } == {
        (record.topic, record.partition, record.offset, record.key, record.value) for record in got
    }
    assert all(row["headers"] == [{"key": "n", "value": row["key"]}] for row in rows)


@pytest.mark.spec("CFG-085")
def test_connections_that_idle_are_closed_and_come_back(site: Site) -> None:
    topic = site.topic(1, records=1)
    with site.consumer(topic, connections_max_idle_ms=100, fetch_max_wait_ms=50) as consumer:
        read(consumer, 1)
        time.sleep(0.5)
        site.write(topic, [7], 1)
        assert values(read(consumer, 1)) == [7]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert "ottla-consumer" not in names
