from __future__ import annotations

import pytest

from ottla.config.replication import ReplicationSettings
from tests.config.defaults import Row, check, marked, spec

ROWS: list[Row] = [
    ("default.replication.factor", "1", "start", spec("CFG-023")),
    ("replica.high.watermark.checkpoint.interval.ms", "5000", "start", spec("CFG-045")),
    ("replica.lag.time.max.ms", "30000", "start", spec("CFG-046")),
    ("replica.fetch.wait.max.ms", "500", "start"),
    ("replica.fetch.min.bytes", "1", "start"),
    ("replica.fetch.max.bytes", "1048576", "start"),
    ("replica.fetch.response.max.bytes", "10485760", "start"),
    ("replica.fetch.backoff.ms", "1000", "start"),
    ("leader.replication.throttled.rate", "9223372036854775807", "cluster"),
    ("follower.replication.throttled.rate", "9223372036854775807", "cluster"),
    ("replica.alter.log.dirs.io.max.bytes.per.second", "9223372036854775807", "cluster"),
    ("replication.quota.window.num", "11", "start"),
    ("replication.quota.window.size.seconds", "1", "start"),
    ("alter.log.dirs.replication.quota.window.num", "11", "start"),
    ("alter.log.dirs.replication.quota.window.size.seconds", "1", "start"),
    ("replica.selector.class", None, "start"),
    ("num.replica.fetchers", "1", "cluster"),
    ("min.insync.replicas", "1", "cluster", spec("CFG-053")),
    ("unclean.leader.election.enable", "false", "cluster", spec("CFG-054")),
    ("auto.leader.rebalance.enable", "true", "start", spec("CFG-055")),
    ("leader.imbalance.per.broker.percentage", "10", "start", spec("CFG-056")),
    ("leader.imbalance.check.interval.seconds", "300", "start", spec("CFG-057")),
    ("controlled.shutdown.enable", "true", "start"),
    ("controlled.shutdown.max.retries", "3", "start"),
    ("controlled.shutdown.retry.backoff.ms", "5000", "start"),
    ("replica.socket.timeout.ms", "30000", "start"),
    ("replica.socket.receive.buffer.bytes", "65536", "start"),
    ("num.replica.alter.log.dirs.threads", None, "start"),
    ("controller.socket.timeout.ms", "30000", "start"),
]


@pytest.mark.parametrize(("name", "text", "scope"), marked(ROWS))
def test_a_replication_setting_has_the_default_of_kafka_4_2(
    name: str, text: str | None, scope: str
) -> None:
    check(ReplicationSettings, name, text, scope)


def test_every_replication_setting_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == set(ReplicationSettings.SETTINGS)
