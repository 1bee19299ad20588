"""The producer for programs without an event loop, against a broker of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import ottla
from ottla.client.producer.delivery import Delivery
from ottla.testing import Broker
from tests.interop.producer_rig import read


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker({"num.partitions": "1"}) as broker:
        yield broker.bootstrap_servers


@pytest.mark.spec("PRD-02", "PRD-03", "PRD-04")
def test_a_record_is_sent_in_the_background_and_its_outcome_waited_for(address: str) -> None:
    with ottla.Producer(bootstrap_servers=address) as producer:
        names: list[str] = []
        delivery = producer.send("simple", b"one")
        delivery.add_done_callback(lambda done: names.append(threading.current_thread().name))
        assert delivery.result(60)[:3] == ("simple", 0, 0)
        producer.flush(60)
        assert names in (["ottla-producer"], ["MainThread"])
        assert [each.index for each in producer.partitions_for("simple")] == [0]


@pytest.mark.spec("PRD-06", "PRD-13", "CFG-094")
def test_a_topic_that_stays_unknown_blocks_for_max_block_ms_and_is_told_by_the_future() -> None:
    with ottla.Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=50) as producer:
        error = producer.send("t", b"").exception(0)
        assert isinstance(error, TimeoutError)
        assert "no metadata from any broker" in str(error)


@pytest.mark.spec("PRD-25", "CFG-093", "CFG-094")
def test_when_memory_is_full_send_blocks_and_then_gives_up(address: str) -> None:
    with ottla.Producer(bootstrap_servers=address) as producer:  # creating a topic may take longer
        producer.send("full", b"first").result(60)
    with ottla.Producer(
        bootstrap_servers=address, buffer_memory=1_000, batch_size=900, max_block_ms=500
    ) as producer:
        claim = producer._intake.claim(200, lambda: None)  # what another thread may hold
        error = producer.send("full", b"second").exception(0)
        assert isinstance(error, TimeoutError)
        assert "buffer.memory (1000) is full" in str(error)
        producer._intake.give_up(claim)
        assert producer.send("full", b"third").result(60).offset == 1


@pytest.mark.spec("PRD-25", "PRD-27")
def test_with_little_memory_everything_arrives_all_the_same(address: str) -> None:
    with ottla.Producer(
        bootstrap_servers=address, buffer_memory=4_000, batch_size=1_000
    ) as producer:
        threads = [
            threading.Thread(
                target=lambda: [producer.send("little", b"x" * 90) for _ in range(300)]
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush(60)
        assert producer.metrics()["record-send-total"] == 900
        assert producer.metrics()["buffer-available-bytes"] == 4_000
    assert len(read(address, "little")) == 900


@pytest.mark.spec("PRD-54")
def test_a_callback_may_close_the_producer_so_that_nothing_follows_a_failure(address: str) -> None:
    producer = ottla.Producer(bootstrap_servers=address, linger_ms=20_000)
    first = producer.send("closing", b"first")
    rest: list[Delivery] = []
    first.add_done_callback(lambda done: producer.close(timeout=0))
    rest.append(producer.send("closing", b"second", partition=0))
    producer._thread.run(producer._core.flush())
    with pytest.raises(ottla.UserError, match="the producer is closed"):
        producer.send("closing", b"third")
    producer.close()
    assert all(each.done() for each in rest)


def test_a_callback_that_would_wait_for_the_producer_is_told_so(address: str) -> None:
    told: list[BaseException] = []
    with ottla.Producer(bootstrap_servers=address) as producer:

        def waits(done: Delivery) -> None:
            try:
                producer.flush()
            except ottla.UserError as error:
                told.append(error)

        delivery = producer.send("waiting", b"", headers={"a": b""})
        delivery.add_done_callback(waits)
        delivery.result(60)
    assert len(told) == 1 or delivery.done()


def test_a_closed_producer_says_so(address: str) -> None:
    producer = ottla.Producer(bootstrap_servers=address)
    producer.close()
    producer.close()
    with pytest.raises(ottla.UserError, match="closed"):
        producer.send("t", b"")
    with pytest.raises(ottla.UserError, match="closed"):
        producer.flush()


def test_a_serializer_that_refuses_raises_where_send_was_called(address: str) -> None:
    with (
        ottla.Producer(bootstrap_servers=address) as producer,
        pytest.raises(ottla.SerializationError, match="expected bytes, got str"),
    ):
        producer.send("t", "text")
