"""A task of a streaming query, as far as the broker can tell."""

from __future__ import annotations

from ottla.client.producer.sync import Producer
from ottla.client.producer.transactions.state import PreparedTransaction


def prepared(servers: str, id: str, topic: str, *values: str) -> PreparedTransaction:
    """Values in a transaction that waits for its decision."""
    with Producer(
        bootstrap_servers=servers, transactional_id=id, transaction_two_phase_commit_enable=True
    ) as producer:
        assert producer.init_transactions(keep_prepared=True) is None
        producer.begin()
        for value in values:
            producer.send(topic, value.encode())
        return producer.prepare_transaction()
