from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

import ottla
from ottla import ErrorCode, KafkaError, TopicPartition
from ottla.client.admin import OffsetSpec
from ottla.testing import Broker
from tests.client.admin.hanging_transaction import leave_hanging

WAIT_S = 20.0


@pytest.fixture
def open_producer(admin_broker: Broker, topic: str, name: str) -> Iterator[Producer]:
    """A producer in the middle of a transaction that is called `name`."""
    producer = Producer(
        {
            "bootstrap.servers": admin_broker.bootstrap_servers,
            "transactional.id": name,
            "log_level": 0,
        }
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, value="open", partition=0)
    assert producer.flush(WAIT_S) == 0
    yield producer
    producer.purge()


def test_an_open_transaction_is_listed_described_and_ended(
    admin: ottla.Admin, topic: str, name: str, open_producer: Producer
) -> None:
    partition = TopicPartition(topic, 0)
    [listed] = admin.list_transactions(pattern=name, states=["Ongoing"])
    assert (listed.id, listed.state, listed.coordinator) == (name, "Ongoing", 0)
    described = admin.describe_transactions([name]).one()
    assert described.partitions == (partition,)
    assert described.started_ms is not None
    assert not described.two_phase
    [active] = admin.describe_producers([partition]).one()
    assert active.producer_id == listed.producer_id
    assert active.transaction_start == 0

    fenced = admin.fence_producers([name]).one()
    assert fenced.producer_epoch > described.producer_epoch
    assert admin.describe_transactions([name]).one().started_ms is None
    end = admin.list_offsets({partition: OffsetSpec.LATEST}, read_committed=True).one()
    assert end.offset == 2, "the record and the end of its transaction"
    with pytest.raises(KafkaException):
        open_producer.commit_transaction(WAIT_S)


def test_a_transaction_that_hangs_in_a_partition_is_aborted_there(
    admin: ottla.Admin, admin_broker: Broker, topic: str
) -> None:
    partition = TopicPartition(topic, 0)
    leave_hanging(admin_broker.bootstrap_servers, topic)
    [hanging] = admin.describe_producers([partition]).one()
    assert hanging.transaction_start == 0
    assert admin.list_offsets({partition: -1}, read_committed=True).one().offset == 0
    admin.abort_transaction(partition, hanging)
    assert admin.list_offsets({partition: -1}, read_committed=True).one().offset == 2


def test_an_id_that_nobody_used_is_not_found(admin: ottla.Admin, name: str) -> None:
    error = admin.describe_transactions([name])[name]
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.transactional_id_not_found


def test_transactions_are_filtered_by_producer_and_age(
    admin: ottla.Admin, name: str, open_producer: Producer
) -> None:
    [listed] = admin.list_transactions(pattern=name)
    assert listed.producer_id in {
        one.producer_id for one in admin.list_transactions(producer_ids=[listed.producer_id])
    }
    assert admin.list_transactions(longer_than_ms=3_600_000, states=["Ongoing"]) == []
