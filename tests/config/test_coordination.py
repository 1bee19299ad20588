from __future__ import annotations

import pytest

from ottla.config.coordination import CoordinationSettings
from tests.config.defaults import Row, check, marked, spec

INT_MAX = "2147483647"
ROWS: list[Row] = [
    ("group.min.session.timeout.ms", "6000", "start", spec("CFG-061")),
    ("group.max.session.timeout.ms", "1800000", "start", spec("CFG-062")),
    ("group.initial.rebalance.delay.ms", "3000", "start", spec("CFG-063")),
    ("group.max.size", INT_MAX, "start", spec("CFG-064")),
    ("offsets.topic.num.partitions", "50", "start", spec("CFG-065")),
    ("offsets.topic.replication.factor", "3", "start", spec("CFG-066")),
    ("offsets.topic.compression.codec", "0", "start", spec("CFG-067")),
    ("offsets.retention.minutes", "10080", "start", spec("CFG-068")),
    ("offsets.retention.check.interval.ms", "600000", "start", spec("CFG-069")),
    ("offset.metadata.max.bytes", "4096", "start", spec("CFG-070")),
    ("transaction.state.log.num.partitions", "50", "start", spec("CFG-072")),
    ("transaction.state.log.replication.factor", "3", "start", spec("CFG-073")),
    ("transaction.state.log.min.isr", "2", "start", spec("CFG-073")),
    ("transactional.id.expiration.ms", "604800000", "start", spec("CFG-074")),
    ("transaction.max.timeout.ms", "900000", "start", spec("CFG-075")),
    ("group.coordinator.rebalance.protocols", "classic,consumer", "start"),
    ("group.coordinator.threads", "4", "start"),
    ("group.coordinator.append.linger.ms", "-1", "start"),
    ("group.consumer.session.timeout.ms", "45000", "start"),
    ("group.consumer.min.session.timeout.ms", "45000", "start"),
    ("group.consumer.max.session.timeout.ms", "60000", "start"),
    ("group.consumer.heartbeat.interval.ms", "5000", "start"),
    ("group.consumer.min.heartbeat.interval.ms", "5000", "start"),
    ("group.consumer.max.heartbeat.interval.ms", "15000", "start"),
    ("group.consumer.max.size", INT_MAX, "start"),
    ("group.consumer.assignors", "uniform,range", "start"),
    ("group.consumer.migration.policy", "bidirectional", "start"),
    ("group.consumer.regex.refresh.interval.ms", "600000", "start"),
    ("offsets.commit.timeout.ms", "5000", "start"),
    ("offsets.load.buffer.size", "5242880", "start"),
    ("offsets.topic.segment.bytes", "104857600", "start"),
    ("transaction.state.log.segment.bytes", "104857600", "start"),
    ("transaction.state.log.load.buffer.size", "5242880", "start"),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "10000", "start"),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", "3600000", "start"),
    ("transaction.partition.verification.enable", "true", "cluster"),
    ("transaction.two.phase.commit.enable", "true", "start"),
    ("add.partitions.to.txn.retry.backoff.ms", "20", "start"),
    ("add.partitions.to.txn.retry.backoff.max.ms", "100", "start"),
]


@pytest.mark.parametrize(("name", "text", "scope"), marked(ROWS))
def test_a_coordinator_setting_has_its_default(name: str, text: str | None, scope: str) -> None:
    check(CoordinationSettings, name, text, scope)


def test_every_coordinator_setting_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == set(CoordinationSettings.SETTINGS)
