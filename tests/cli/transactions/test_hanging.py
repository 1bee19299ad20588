from __future__ import annotations

import pytest

import ottla
from ottla.cli.transactions.hanging import (
    OpenTransaction,
    find,
    find_decided,
    hanging,
    missing,
    still_decided,
)
from ottla.client.admin import ActiveProducer, Transaction
from ottla.model.ids import TopicPartition
from ottla.testing import Broker
from tests.cli.transactions.conftest import Begin, allow_markers
from tests.client.admin.hanging_transaction import PRODUCER_ID, leave_hanging
from tests.cluster.process import wait_for

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
OPEN = OpenTransaction(HERE, ActiveProducer(7, 0, 0, 0, 0, 3))


def transaction(
    producer: int, *partitions: TopicPartition, state: str = "Ongoing", started_ms: int = 0
) -> Transaction:
    return Transaction("x", state, producer, 0, 60_000, started_ms, partitions, 0)


def test_a_transaction_that_its_coordinator_will_end_does_not_hang() -> None:
    assert list(hanging([OPEN], {"x": transaction(7, HERE)})) == []


def test_one_that_no_coordinator_knows_hangs() -> None:
    assert list(hanging([OPEN], {})) == [OPEN]
    assert list(hanging([OPEN], {"x": transaction(7, THERE)})) == [OPEN]
    assert list(hanging([OPEN], {"x": transaction(8, HERE)})) == [OPEN]


def test_those_that_hang_are_found_among_those_that_go_on(
    admin: ottla.Admin, cli_broker: Broker, topic: str, begin: Begin
) -> None:
    begin("goes-on")
    assert find(admin, [TopicPartition(topic, 0)]) == []
    leave_hanging(cli_broker.bootstrap_servers, topic)
    [found] = find(admin, [TopicPartition(topic, 0), TopicPartition(topic, 1)])
    assert found.producer.producer_id == PRODUCER_ID
    assert found.producer.transaction_start == 1


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
def test_a_decided_transaction_that_is_the_same_at_a_second_look_does_not_end(state: str) -> None:
    decided = {"x": transaction(7, HERE, state=state)}
    assert list(still_decided(decided, dict(decided))) == [decided["x"]]


def test_a_decided_transaction_that_has_ended_or_is_another_one_by_now_goes_on() -> None:
    first = {"x": transaction(7, HERE, state="PrepareCommit")}
    assert list(still_decided(first, {})) == []
    assert list(still_decided(first, {"x": transaction(7, state="CompleteCommit")})) == []
    another = transaction(7, HERE, state="PrepareCommit", started_ms=5)
    assert list(still_decided(first, {"x": another})) == []
    assert list(still_decided({"x": transaction(7, HERE)}, {"x": transaction(7, HERE)})) == []


def test_where_a_decided_transaction_is_still_open_its_marker_is_missing() -> None:
    decided = transaction(7, HERE, THERE, state="PrepareCommit")
    other = OpenTransaction(THERE, ActiveProducer(8, 0, 0, 0, 0, 3))
    assert list(missing(decided, [OPEN, other])) == [OPEN]


def test_a_decided_transaction_whose_marker_is_refused_is_found_until_it_ends(
    admin: ottla.Admin, topic: str, stuck: ottla.Producer
) -> None:
    everywhere = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    [found] = find_decided(admin, everywhere, look_again_s=0.1)
    assert (found.transaction.id, found.transaction.state) == ("stuck", "PrepareCommit")
    assert [one.partition for one in found.missing] == [TopicPartition(topic, 0)]
    assert f"make {topic}-0 writable again" in found.what_to_do
    allow_markers(admin, topic)
    wait_for(lambda: not find_decided(admin, everywhere, look_again_s=0.1), 30.0, "its end")
    stuck.begin()  # its id can go on
    stuck.send(topic, b"next").result(20)
    stuck.commit()
