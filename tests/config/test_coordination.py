from __future__ import annotations

import pytest

from ottla.config.coordination import CoordinationSettings
from tests.config.defaults import Row, check, marked

INT_MAX = "2147483647"
ROWS: list[Row] = [
    ("group.min.session.timeout.ms", "6000", ("CFG-061",)),
    ("group.max.session.timeout.ms", "1800000", ("CFG-062",)),
    ("group.initial.rebalance.delay.ms", "3000", ("CFG-063",)),
    ("group.max.size", INT_MAX, ("CFG-064",)),
    ("offsets.topic.num.partitions", "50", ("CFG-065",)),
    ("offsets.topic.replication.factor", "3", ("CFG-066",)),
    ("offsets.topic.compression.codec", "0", ("CFG-067",)),
    ("offsets.retention.minutes", "10080", ("CFG-068",)),
    ("offsets.retention.check.interval.ms", "600000", ("CFG-069",)),
    ("offset.metadata.max.bytes", "4096", ("CFG-070",)),
    ("transaction.state.log.num.partitions", "50", ("CFG-072",)),
    ("transaction.state.log.replication.factor", "3", ("CFG-073",)),
    ("transaction.state.log.min.isr", "2", ("CFG-073",)),
    ("transactional.id.expiration.ms", "604800000", ("CFG-074",)),
    ("transaction.max.timeout.ms", "900000", ("CFG-075",)),
    ("group.coordinator.rebalance.protocols", "classic,consumer", ()),
    ("group.coordinator.threads", "4", ()),
    ("group.coordinator.append.linger.ms", "-1", ()),
    ("group.consumer.session.timeout.ms", "45000", ()),
    ("group.consumer.min.session.timeout.ms", "45000", ()),
    ("group.consumer.max.session.timeout.ms", "60000", ()),
    ("group.consumer.heartbeat.interval.ms", "5000", ()),
    ("group.consumer.min.heartbeat.interval.ms", "5000", ()),
    ("group.consumer.max.heartbeat.interval.ms", "15000", ()),
    ("group.consumer.max.size", INT_MAX, ()),
    ("group.consumer.assignors", "uniform,range", ()),
    ("group.consumer.migration.policy", "bidirectional", ()),
    ("group.consumer.regex.refresh.interval.ms", "600000", ()),
    ("offsets.commit.timeout.ms", "5000", ()),
    ("offsets.load.buffer.size", "5242880", ()),
    ("offsets.topic.segment.bytes", "104857600", ()),
    ("transaction.state.log.segment.bytes", "104857600", ()),
    ("transaction.state.log.load.buffer.size", "5242880", ()),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "10000", ()),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", "3600000", ()),
    ("transaction.partition.verification.enable", "true", ()),
    ("transaction.two.phase.commit.enable", "true", ()),
    ("add.partitions.to.txn.retry.backoff.ms", "20", ()),
    ("add.partitions.to.txn.retry.backoff.max.ms", "100", ()),
]


@pytest.mark.parametrize(("name", "text"), marked(ROWS))
def test_a_coordinator_setting_has_its_default(name: str, text: str | None) -> None:
    check(CoordinationSettings, name, text)


def test_every_coordinator_setting_is_in_the_table() -> None:
    assert {name for name, _, _ in ROWS} == set(CoordinationSettings.SETTINGS)
