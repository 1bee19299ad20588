from __future__ import annotations

import ottla
from ottla.cli.transactions.hanging import OpenTransaction, find, hanging
from ottla.client.admin import ActiveProducer, Transaction
from ottla.model.ids import TopicPartition
from ottla.testing import Broker
from tests.cli.transactions.conftest import Begin
from tests.client.admin.hanging import PRODUCER_ID, leave_hanging

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
OPEN = OpenTransaction(HERE, ActiveProducer(7, 0, 0, 0, 0, 3))


def transaction(producer: int, *partitions: TopicPartition) -> Transaction:
    return Transaction("x", "Ongoing", producer, 0, 60_000, 0, partitions, 0)


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
