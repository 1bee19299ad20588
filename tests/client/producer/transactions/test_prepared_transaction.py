"""A prepared transaction is ended by somebody who is not its producer."""

from __future__ import annotations

import pytest

import ottla
from ottla.client.errors import ErrorCode, KafkaError
from ottla.client.producer.transactions.prepared_transaction import end
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.client.retry import Deadline
from ottla.testing import Broker
from tests.client.rig import connected
from tests.fakes.scripted_broker import FIND_COORDINATOR, HANG_UP, ScriptedBroker
from tests.interop.producer_rig import read

END_TXN = 26


def test_what_was_prepared_is_committed_or_aborted_from_outside() -> None:
    with Broker() as broker:
        for topic, commit in (("kept", True), ("dropped", False)):
            with ottla.Producer(
                bootstrap_servers=broker.bootstrap_servers,
                transactional_id=topic,
                transaction_two_phase_commit_enable=True,
            ) as producer:
                producer.init_transactions()
                producer.begin()
                producer.send(topic, b"prepared")
                prepared = producer.prepare_transaction()
            for _ in range(2):  # again is no error
                ottla.end_transaction(
                    prepared, commit=commit, bootstrap_servers=broker.bootstrap_servers
                )
            seen = [each.value for each in read(broker.bootstrap_servers, topic)]
            assert seen == ([b"prepared"] if commit else [])


@pytest.mark.real_loop
async def test_it_is_tried_until_the_coordinator_answers_and_a_refusal_is_told() -> None:
    async with ScriptedBroker() as broker, connected(broker) as cluster:
        prepared = PreparedTransaction("x", 5, 3)
        broker.script(END_TXN, {"error_code": ErrorCode.not_coordinator}, HANG_UP)
        await end(cluster, prepared, True, Deadline(cluster.clock, 60_000))
        assert broker.count(FIND_COORDINATOR) == 3
        request = broker.asked[-1][2]
        assert (request.producer_id, request.producer_epoch, request.committed) == (5, 3, True)
        broker.script(END_TXN, {"error_code": ErrorCode.invalid_producer_id_mapping})
        with pytest.raises(KafkaError, match="transaction of x: invalid_producer_id_mapping"):
            await end(cluster, prepared, False, Deadline(cluster.clock, 60_000))
