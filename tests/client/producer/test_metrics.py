"""What `Producer.metrics()` says after work with a broker of ours."""

from __future__ import annotations

import threading

import pytest

import ottla
from ottla.testing import Broker

RECORDS = 300


@pytest.mark.spec("MON-24")
def test_metrics_of_a_producer_tell_what_became_of_its_records_and_what_they_waited_for() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        with ottla.Admin(bootstrap_servers=address) as admin:
            admin.create_topic("small", partitions=1, configs={"max.message.bytes": "3000"})
        with ottla.Producer(
            bootstrap_servers=address, buffer_memory=20_000, batch_size=20_000, linger_ms=100
        ) as producer:
            before = producer.metrics()
            assert before["request-latency-max"] == before["compression-rate-avg"] == 0
            threads = [
                threading.Thread(
                    target=lambda: [producer.send("small", b"x" * 200) for _ in range(RECORDS // 3)]
                )
                for _ in range(3)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            producer.flush(60)
            metrics = producer.metrics()
    assert metrics["record-send-total"] == RECORDS
    assert metrics["record-error-total"] == metrics["batch-expired-total"] == 0
    assert metrics["batch-split-total"] > 0
    assert metrics["batch-size-avg"] <= 3_000
    assert metrics["compression-rate-avg"] == 1
    assert metrics["request-total"] > RECORDS * 200 / 3_000
    assert 0 < metrics["request-latency-avg"] <= metrics["request-latency-max"] < 60_000
    assert metrics["bufferpool-wait-time-ns-total"] > 0
    assert metrics["buffer-exhausted-total"] == 0
