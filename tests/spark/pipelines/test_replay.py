"""Dead letters go back as they were, each once, whatever reasons were replayed before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client.admin.sync import Admin
from ottla.client.consumer.sync import Consumer
from ottla.client.producer.sync import Producer
from ottla.model.ids import TopicPartition
from ottla.spark.pipelines.dlq.letters import REASON_HEADER, TOPIC_HEADER
from ottla.spark.pipelines.dlq.positions import (
    TOPIC,
    Positions,
    from_record,
    read_ranges,
    to_record,
)
from ottla.spark.pipelines.dlq.replay import REPLAYS_HEADER, Selection, origin, replay, sent_back
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS

LETTER = ((TOPIC_HEADER, b"orders"), (REASON_HEADER, b"no page"), ("mine", b"1"))
DEAD = TopicPartition("dead", 0)


@pytest.fixture
def client() -> Iterator[dict[str, str]]:
    with Broker(DEFAULT_SETTINGS) as broker:
        yield {"bootstrap.servers": broker.bootstrap_servers}


def send_letters(client: dict[str, str], *reasons: str) -> None:
    with Producer(config=client) as producer:
        for number, reason in enumerate(reasons):
            headers = [(TOPIC_HEADER, b"orders"), (REASON_HEADER, reason.encode())]
            producer.send("dead", b"%d" % number, headers=headers)


def values_in(client: dict[str, str], topic: str) -> list[bytes | None]:
    consumer: Consumer[bytes, bytes] = Consumer(config=client, isolation_level="read_committed")
    with consumer:
        partition = TopicPartition(topic, 0)
        ends = consumer.end_offsets([partition])
        ranges = {partition: (0, ends[partition])}
        return [record.value for records in read_ranges(consumer, ranges) for record in records]


@pytest.mark.spec("APP-16")
def test_a_letter_goes_back_without_what_made_it_one() -> None:
    assert origin(LETTER) == "orders"
    assert origin((("mine", b"1"),)) is None
    assert sent_back(LETTER) == [("mine", b"1"), (REPLAYS_HEADER, b"1")]
    assert sent_back(((REPLAYS_HEADER, b"1"), ("mine", b"1")))[-1] == (REPLAYS_HEADER, b"2")
    assert sent_back(((REPLAYS_HEADER, b"?"),)) == [(REPLAYS_HEADER, b"1")]


def test_a_letter_is_replayed_if_its_reason_or_every_reason_was_replayed_beyond_it() -> None:
    positions = Positions({(DEAD, None): 5, (DEAD, "no page"): 9})
    assert positions.is_replayed(DEAD, 4, "nobody")
    assert not positions.is_replayed(DEAD, 5, "nobody")
    assert positions.is_replayed(DEAD, 8, "no page")
    assert not positions.is_replayed(DEAD, 9, "no page")


def test_a_position_is_the_same_after_it_was_stored() -> None:
    for reason in (None, "no page", "größer"):
        assert from_record(*to_record((DEAD, reason), 7)) == ((DEAD, reason), 7)
    key, _ = to_record((DEAD, None), 7)
    with pytest.raises(ValueError, match="unsupported format 2"):
        from_record(key, b'{"format":2,"next":7}')


@pytest.mark.spec("APP-16", "APP-11")
def test_letters_are_replayed_once_on_a_broker_with_default_settings(
    client: dict[str, str],
) -> None:
    with Producer(config=client) as producer:
        producer.send("dead", b"1", key=b"k", headers=list(LETTER))
        producer.send("dead", b"no letter")
    first = replay(client, "dead")
    again = replay(client, "dead")
    assert (first.sent, first.not_letters) == ({("orders", "no page"): 1}, 1)
    assert not again.sent
    consumer: Consumer[bytes, bytes] = Consumer(config=client, auto_offset_reset="earliest")
    with consumer:
        consumer.assign([TopicPartition("orders", 0)])
        (record,) = consumer.poll(10.0)
    assert (record.key, record.value) == (b"k", b"1")
    assert dict(record.headers) == {"mine": b"1", REPLAYS_HEADER: b"1"}


@pytest.mark.spec("APP-16")
def test_letters_of_another_reason_can_be_replayed_later(client: dict[str, str]) -> None:
    send_letters(client, "a", "b", "a", "c")
    only_a = replay(client, "dead", Selection(reason="a"))
    assert (only_a.sent, only_a.other_reason) == ({("orders", "a"): 2}, 2)
    assert not replay(client, "dead", Selection(reason="a")).sent
    assert replay(client, "dead", Selection(reason="c")).sent == {("orders", "c"): 1}
    rest = replay(client, "dead")
    assert (rest.sent, rest.before) == ({("orders", "b"): 1}, 3)
    send_letters(client, "a")
    assert replay(client, "dead").sent == {("orders", "a"): 1}
    assert sorted(values_in(client, "orders"), key=str) == [b"0", b"0", b"1", b"2", b"3"]


def test_a_dry_run_counts_and_writes_nothing(client: dict[str, str]) -> None:
    send_letters(client, "a", "b")
    told: list[tuple[int, int]] = []
    planned = replay(client, "dead", dry_run=True, on_progress=lambda *now: told.append(now))
    assert planned.sent == {("orders", "a"): 1, ("orders", "b"): 1}
    assert (told[0], told[-1]) == ((0, 2), (2, 2))
    with Admin(config=client) as admin:
        assert TOPIC not in admin.list_topics(internal=True)
    assert replay(client, "dead").sent == planned.sent


def test_letters_can_be_sent_again_and_elsewhere(client: dict[str, str]) -> None:
    send_letters(client, "a")
    replay(client, "dead")
    assert replay(client, "dead", Selection(to="other", again=True)).sent == {("other", "a"): 1}
    assert not replay(client, "dead").sent


def test_letters_that_a_replay_of_an_earlier_version_sent_are_not_sent_again(
    client: dict[str, str],
) -> None:
    send_letters(client, "a", "a", "a")
    with Admin(config=client) as admin:
        admin.alter_group_offsets("ottla-replay-dead", {DEAD: 2}).all()
        assert replay(client, "dead").sent == {("orders", "a"): 1}
        admin.delete_groups(["ottla-replay-dead"]).all()  # as the broker does after a week
    assert not replay(client, "dead").sent


def test_a_letter_that_arrives_during_a_replay_is_left_for_the_next(client: dict[str, str]) -> None:
    send_letters(client, "a")
    told: list[int] = []

    def add_a_letter(done: int, total: int) -> None:
        if not told:
            send_letters(client, "late")
        told.append(total)

    assert replay(client, "dead", on_progress=add_a_letter).sent == {("orders", "a"): 1}
    assert replay(client, "dead").sent == {("orders", "late"): 1}
