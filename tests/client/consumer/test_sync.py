from __future__ import annotations

import threading
from typing import Any

import pytest

import ottla
from ottla import TopicPartition
from ottla.client.consumer.errors import ConcurrentUse, Wakeup
from ottla.client.consumer.sync import Consumer
from tests.client.consumer.conftest import WAIT_S, Filled


def options(bootstrap: str, **more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", **more}


def test_the_short_name_is_this_one() -> None:
    assert ottla.Consumer is Consumer


def test_iterating_goes_on_where_a_loop_was_left(bootstrap: str, filled: Filled) -> None:
    topic = filled(1, 30)
    with Consumer(topic, **options(bootstrap, max_poll_records=10)) as consumer:
        seen: list[int] = []
        for stop in (4, 17, 29):
            for record in consumer:
                seen.append(record.offset)
                if record.offset == stop:
                    break
        assert seen == list(range(30))


def test_a_poll_after_a_loop_gives_what_the_loop_left(bootstrap: str, filled: Filled) -> None:
    topic = filled(1, 10)
    with Consumer(topic, **options(bootstrap)) as consumer:
        for record in consumer:
            if record.offset == 6:
                break
        assert consumer.position(TopicPartition(topic, 0)) == 7
        assert [record.offset for record in consumer.poll(WAIT_S)] == [7, 8, 9]


def test_columns_after_a_loop_begin_where_the_loop_was_left(bootstrap: str, filled: Filled) -> None:
    topic = filled(1, 10)
    with Consumer(topic, **options(bootstrap)) as consumer:
        for record in consumer:
            if record.offset == 6:
                break
        assert consumer.poll_arrow(WAIT_S)["offset"].to_pylist() == [7, 8, 9]


def test_a_seek_in_the_middle_of_an_iteration_counts_at_once(
    bootstrap: str, filled: Filled
) -> None:
    topic = filled(1, 20)
    with Consumer(topic, **options(bootstrap)) as consumer:
        seen: list[int] = []
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 2 and len(seen) < 5:
                consumer.seek(TopicPartition(topic, 0), 18)
            if record.offset == 19:
                break
        assert seen == [0, 1, 2, 18, 19]


@pytest.mark.spec("CON-49")
def test_two_threads_are_both_named(bootstrap: str, filled: Filled) -> None:
    with Consumer(filled(1), **options(bootstrap)) as consumer:
        consumer.poll(0)
        with consumer._owned:
            complaints: list[str] = []

            def meddle() -> None:
                try:
                    consumer.poll(0)
                except ConcurrentUse as complaint:
                    complaints.append(str(complaint))

            meddler = threading.Thread(target=meddle, name="meddler")
            meddler.start()
            meddler.join()
        (complaint,) = complaints
        assert "thread 'meddler'" in complaint
        assert f"thread {threading.current_thread().name!r}" in complaint


@pytest.mark.spec("CON-50")
def test_wakeup_before_the_first_poll_is_not_forgotten(bootstrap: str, filled: Filled) -> None:
    with Consumer(filled(1), **options(bootstrap)) as consumer:
        consumer.wakeup()
        with pytest.raises(Wakeup):
            consumer.poll(WAIT_S)
        assert consumer.poll(0) == []


@pytest.mark.spec("CON-51")
def test_a_closed_consumer_says_so_and_closing_twice_is_fine(bootstrap: str) -> None:
    unused = Consumer("t", **options(bootstrap))
    unused.close()
    consumer = Consumer(**options(bootstrap))
    assert consumer.metrics()["assigned-partitions"] == 0
    consumer.close()
    consumer.close()
    for one in (unused, consumer):
        with pytest.raises(ottla.UserError, match="closed"):
            one.poll(0)
    assert "ottla-consumer" not in {thread.name for thread in threading.enumerate()}


def test_the_poll_that_finds_records_asks_the_loop_for_nothing(
    bootstrap: str, filled: Filled
) -> None:
    topic = filled(1, 100)
    with Consumer(topic, **options(bootstrap, max_poll_records=10)) as consumer:
        consumer.poll(WAIT_S)
        go_on = threading.Event()
        consumer._thread.call_soon(go_on.wait)  # the loop stands still
        try:
            assert [len(consumer.poll(0)) for _ in range(9)] == [10] * 9
        finally:
            go_on.set()


def test_everything_that_can_be_asked_of_a_topic(bootstrap: str, filled: Filled) -> None:
    topic = filled(2, 4)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Consumer(**options(bootstrap, group_id="asking")) as consumer:
        assert consumer.partitions_for(topic) == (0, 1)
        assert consumer.beginning_offsets([one, two]) == {one: 0, two: 0}
        assert consumer.end_offsets([one, two]) == {one: 2, two: 2}
        assert consumer.committed([one]) == {}
        assert consumer.group_metadata().group_id == "asking"
        consumer.assign([one, two])
        consumer.commit({one: 2})
        assert consumer.committed([one, two])[one].offset == 2
        assert consumer.subscription() == frozenset()
        consumer.pause(one)
        assert consumer.paused() == {one}
        consumer.resume(one)
        assert consumer.paused() == frozenset()
        consumer.seek_to_beginning(one)
        assert consumer.position(one) == 0
        consumer.seek_to_end()
        assert consumer.position(one) == consumer.position(two) == 2
