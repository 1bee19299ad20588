"""Our consumer as a member of a group, and its commits: with Ottla and with Apache Kafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import ottla
from ottla import (
    CommitFailed,
    OffsetAndMetadata,
    RebalanceListener,
    TopicPartition,
)
from tests.interop.consumer_cluster import (
    WAIT_S,
    Site,
    partitions,
    read,
    until,
    values,
)


@pytest.mark.spec("CON-05", "CON-52")
def test_each_partition_has_one_reader_and_groups_do_not_know_each_other(
    site: Site, group: str
) -> None:
    topic = site.topic(records=30)
    with (
        site.consumer(topic, group_id=group) as one,
        site.consumer(topic, group_id=group) as two,
        site.consumer(topic, group_id=f"{group}-other") as other,
    ):

        def shared() -> bool:
            sizes = sorted((len(one.assignment()), len(two.assignment())))
            return sizes == [1, 2] and not one.assignment() & two.assignment()

        until(shared, one, two)
        assert sorted(values(read(other, 30))) == list(range(30))


class Diary(RebalanceListener):
    """Writes down who came and went, and on which thread."""

    def __init__(self, consumer: ottla.Consumer[bytes, bytes]) -> None:
        self.consumer = consumer
        self.pages: list[tuple[str, frozenset[TopicPartition]]] = []
        self.threads: set[str] = set()

    def _write(self, word: str, partitions: frozenset[TopicPartition]) -> None:
        self.threads.add(threading.current_thread().name)
        self.pages.append((word, partitions))

    def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._write("assigned", partitions)

    def on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._write("revoked", partitions)
        self.consumer.commit()

    def on_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._write("lost", partitions)


@pytest.mark.spec("CON-20", "CON-22", "CON-24", "CON-27")
def test_the_listener_is_called_inside_polls_and_may_use_the_consumer(
    site: Site, group: str
) -> None:
    topic = site.topic(2, records=10)
    options = {"group_id": group, "enable_auto_commit": False}
    with site.consumer(**options) as first, site.consumer(topic, **options) as second:
        diary = Diary(first)
        first.subscribe([topic], listener=diary)
        read(first, 10)
        until(lambda: len(first.assignment()) == len(second.assignment()) == 1, first, second)
        words = [word for word, _ in diary.pages]
        assert words[:3] == ["assigned", "revoked", "assigned"]
        assert diary.pages[0][1] == diary.pages[1][1] == partitions(topic, 2)
        assert diary.threads == {threading.current_thread().name}
        committed = first.committed(partitions(topic, 2))
        assert sum(place.offset for place in committed.values()) == 10, "committed when revoked"


@pytest.mark.spec("CON-48")
def test_offsets_may_be_kept_elsewhere(site: Site, group: str) -> None:
    topic = site.topic(1, records=10)

    class Elsewhere(RebalanceListener):
        def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
            for tp in partitions:
                consumer.seek(tp, 7)

    with site.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], listener=Elsewhere())
        assert values(read(consumer, 3)) == [7, 8, 9]


def test_an_error_in_a_listener_is_raised_by_the_poll(site: Site, group: str) -> None:
    topic = site.topic(1, records=1)

    class Broken(RebalanceListener):
        def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
            raise ZeroDivisionError("mine")

    with site.consumer(group_id=group) as consumer:
        consumer.subscribe([topic], listener=Broken())
        with pytest.raises(ZeroDivisionError, match="mine"):
            until(lambda: False, consumer)
        assert values(read(consumer, 1)) == [0]


@pytest.mark.spec("CON-40", "CON-43", "CON-47", "CON-41")
def test_a_commit_is_one_past_the_last_and_decides_where_the_next_one_begins(
    site: Site, group: str
) -> None:
    topic = site.topic(1, records=10)
    tp = TopicPartition(topic, 0)
    options = {"group_id": group, "enable_auto_commit": False}
    with site.consumer(topic, **options) as consumer:
        read(consumer, 8)
        consumer.commit()
        assert consumer.committed([tp])[tp].offset == 8
        consumer.commit({tp: OffsetAndMetadata(5, "half way")})
        assert consumer.committed([tp])[tp][:2] == (5, "half way")
    with site.consumer(topic, **options) as consumer:
        assert values(read(consumer, 5)) == [5, 6, 7, 8, 9], "what was handled again"


@pytest.mark.spec("CON-44", "CON-45", "CON-46")
def test_asynchronous_commits_keep_their_order_and_call_back(site: Site, group: str) -> None:
    topic = site.topic(1, records=10)
    tp = TopicPartition(topic, 0)
    heard: list[tuple[int, Exception | None]] = []
    with site.consumer(topic, group_id=group, enable_auto_commit=False) as consumer:
        read(consumer, 10)
        for offset in (1, 2, 3):
            consumer.commit_async(
                {tp: offset}, lambda offsets, error: heard.append((offsets[tp].offset, error))
            )
        consumer.commit({tp: 4})
        assert consumer.committed([tp])[tp].offset == 4
        until(lambda: len(heard) == 3, consumer)
        assert heard == [(1, None), (2, None), (3, None)]


@pytest.mark.spec("CON-42", "CON-51", "CFG-108", "CFG-109")
def test_offsets_are_committed_by_themselves_while_polling_and_when_closing(
    site: Site, group: str
) -> None:
    topic = site.topic(1, records=10)
    tp = TopicPartition(topic, 0)
    with site.consumer(group_id=group) as watcher:
        with site.consumer(topic, group_id=group, auto_commit_interval_ms=100) as consumer:
            read(consumer, 6)
            until(lambda: bool(watcher.committed([tp])), consumer)
            read(consumer, 0)
        place = watcher.committed([tp])[tp].offset
        assert place >= 6
        with site.consumer(topic, group_id=group) as consumer:
            if place < 10:
                assert values(read(consumer, 10 - place)) == list(range(place, 10))


@pytest.mark.spec("CON-42")
def test_a_loop_that_is_left_commits_only_what_it_saw(site: Site, group: str) -> None:
    topic = site.topic(1, records=10)
    with site.consumer(topic, group_id=group) as consumer:
        for record in consumer:
            if record.offset == 3:
                break
    with site.consumer(topic, group_id=group) as consumer:
        assert values(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


@pytest.mark.spec("CON-51", "CON-23")
def test_a_member_that_closes_is_replaced_at_once(site: Site, group: str) -> None:
    topic = site.topic(2)
    with site.consumer(topic, group_id=group, session_timeout_ms=30_000) as stays:
        with site.consumer(topic, group_id=group) as goes:
            until(lambda: len(goes.assignment()) == 1, stays, goes)
        began = time.monotonic()
        until(lambda: len(stays.assignment()) == 2, stays)
        assert time.monotonic() - began < 20, "nobody waits for a session to end"


@pytest.mark.spec("CON-23", "CON-26", "CFG-119", "CFG-120")
def test_heartbeats_go_on_while_the_program_works(site: Site, group: str) -> None:
    topic = site.topic(1, records=2)
    options = {"group_id": group, "session_timeout_ms": 3_000, "heartbeat_interval_ms": 200}
    with site.consumer(topic, enable_auto_commit=False, **options) as consumer:
        read(consumer, 1)
        time.sleep(4.0)  # longer than the session: only heartbeats keep it
        consumer.commit()
        assert consumer.metrics()["rebalance-total"] == 1


@pytest.mark.spec("CON-25", "CON-41", "CFG-118")
def test_a_member_that_stops_polling_loses_its_partitions_and_its_commit(
    site: Site, group: str
) -> None:
    topic = site.topic(1, records=5)
    tp = TopicPartition(topic, 0)
    options = {"group_id": group, "enable_auto_commit": False}
    with site.consumer(max_poll_interval_ms=2_000, **options) as slow:
        diary = Diary(slow)
        slow.subscribe([topic], listener=diary)
        read(slow, 3)
        with site.consumer(topic, **options) as quick:
            got = until(lambda: quick.assignment() == {tp}, quick)
            assert values(got + read(quick, 5 - len(got))) == [0, 1, 2, 3, 4]
            with pytest.raises(CommitFailed, match="assigned this member's partitions"):
                slow.commit()
            quick.commit()
        until(lambda: len(diary.pages) == 3, slow)
        assert [word for word, _ in diary.pages] == ["assigned", "lost", "assigned"]


@pytest.mark.spec("CFG-107")
def test_a_static_member_that_restarts_disturbs_nobody(site: Site, group: str) -> None:
    topic = site.topic(2)
    options: dict[str, Any] = {"group_id": group, "session_timeout_ms": 30_000}
    with site.consumer(group_instance_id="steady", **options) as steady:
        diary = Diary(steady)
        steady.subscribe([topic], listener=diary)
        with site.consumer(topic, group_instance_id="coming", **options) as coming:
            until(lambda: len(coming.assignment()) == len(steady.assignment()) == 1, steady, coming)
            before = coming.assignment()
        diary.pages.clear()
        with site.consumer(topic, group_instance_id="coming", **options) as back:
            until(lambda: bool(back.assignment()), steady, back)
            assert back.assignment() == before
        assert diary.pages == []


@pytest.mark.spec("CON-28", "CON-19")
def test_a_rebalance_may_be_asked_for(site: Site, group: str) -> None:
    with site.consumer(site.topic(1), group_id=group) as consumer:
        until(lambda: bool(consumer.assignment()), consumer)
        generation = consumer.group_metadata().generation_id
        consumer.enforce_rebalance("because")
        until(lambda: consumer.group_metadata().generation_id > generation, consumer)


@pytest.mark.spec("CON-05", "CON-27", "CON-43", "CON-51")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_either_protocol_shares_commits_and_takes_over(
    site: Site, group: str, protocol: str
) -> None:
    topic = site.topic(4, records=40)
    options = {"group_id": group, "group_protocol": protocol, "enable_auto_commit": False}
    with site.consumer(**options) as stays:
        diary = Diary(stays)
        stays.subscribe([topic], listener=diary)
        got = read(stays, 20)
        with site.consumer(topic, **options) as comes:
            got += until(
                lambda: len(stays.assignment()) == len(comes.assignment()) == 2, stays, comes
            )
            assert stays.assignment() | comes.assignment() == partitions(topic, 4)
            comes.commit()
        got += until(lambda: stays.assignment() == partitions(topic, 4), stays)
        stays.commit()
        end = time.monotonic() + WAIT_S
        while set(values(got)) != set(range(40)):
            assert time.monotonic() < end, "records are missing"
            got += stays.poll(0.2)
    words = [word for word, _ in diary.pages]
    assert words[0] == "assigned"
    assert "revoked" in words
    assert words[-1] == "revoked", "closing gives up what is left"


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert "ottla-consumer" not in names
