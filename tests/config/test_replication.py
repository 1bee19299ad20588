from __future__ import annotations

import pytest

from ottla.config.replication import ReplicationSettings
from tests.config.defaults import Row, check, marked

ROWS: list[Row] = [
    ("zookeeper.connect", None, ("CFG-004",)),
    ("default.replication.factor", "1", ("CFG-023",)),
    ("replica.high.watermark.checkpoint.interval.ms", "5000", ("CFG-045",)),
    ("replica.lag.time.max.ms", "30000", ("CFG-046",)),
    ("replica.fetch.wait.max.ms", "500", ("CFG-047",)),
    ("replica.fetch.min.bytes", "1", ("CFG-048",)),
    ("replica.fetch.max.bytes", "1048576", ("CFG-049",)),
    ("replica.fetch.response.max.bytes", "10485760", ("CFG-050",)),
    ("replica.fetch.backoff.ms", "1000", ("CFG-051",)),
    ("num.replica.fetchers", "1", ("CFG-052",)),
    ("min.insync.replicas", "1", ("CFG-053",)),
    ("unclean.leader.election.enable", "false", ("CFG-054",)),
    ("auto.leader.rebalance.enable", "true", ("CFG-055",)),
    ("leader.imbalance.per.broker.percentage", "10", ("CFG-056",)),
    ("leader.imbalance.check.interval.seconds", "300", ("CFG-057",)),
    ("controlled.shutdown.enable", "true", ("CFG-059",)),
    ("controlled.shutdown.max.retries", "3", ("CFG-059",)),
    ("controlled.shutdown.retry.backoff.ms", "5000", ("CFG-059",)),
    ("replica.socket.timeout.ms", "30000", ()),
    ("replica.socket.receive.buffer.bytes", "65536", ()),
    ("num.replica.alter.log.dirs.threads", None, ()),
    ("controller.socket.timeout.ms", "30000", ()),
    ("zookeeper.session.timeout.ms", "18000", ()),
    ("zookeeper.connection.timeout.ms", None, ()),
    ("zookeeper.max.in.flight.requests", "10", ()),
]


@pytest.mark.parametrize(("name", "text"), marked(ROWS))
def test_a_replication_setting_has_the_default_of_kafka_4_2(name: str, text: str | None) -> None:
    check(ReplicationSettings, name, text)


def test_every_replication_setting_is_in_the_table() -> None:
    assert {name for name, _, _ in ROWS} == set(ReplicationSettings.SETTINGS)
