from __future__ import annotations

import pytest

from ottla.client.consumer.rebalance_listener import RebalanceListener
from ottla.model.ids import TopicPartition

HERE = frozenset({TopicPartition("t", 0)})


@pytest.mark.spec("CON-27")
def test_a_listener_that_knows_nothing_of_losing_hears_of_a_revocation() -> None:
    on_heartbeat: list[frozenset[TopicPartition]] = []

    class OnlyRevoked(RebalanceListener):
        def on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
            on_heartbeat.append(partitions)

    OnlyRevoked().on_lost(HERE)
    assert on_heartbeat == [HERE]
    assert RebalanceListener().on_assigned(HERE) is None
    assert RebalanceListener().on_revoked(HERE) is None
