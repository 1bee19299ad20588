from __future__ import annotations

import pytest

from ottla.config.network import NetworkSettings
from tests.config.defaults import Row, check, marked, spec

INT_MAX = "2147483647"
ROWS: list[Row] = [
    ("listeners", "PLAINTEXT://:9092", "broker", spec("CFG-006")),
    ("advertised.listeners", None, "start", spec("CFG-007")),
    (
        "listener.security.protocol.map",
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "broker",
        spec("CFG-008"),
    ),
    ("control.plane.listener.name", None, "start", spec("CFG-009")),
    ("num.network.threads", "3", "cluster"),
    ("num.io.threads", "8", "cluster"),
    ("queued.max.requests", "500", "start", spec("CFG-012")),
    ("socket.send.buffer.bytes", "102400", "start", spec("CFG-013")),
    ("socket.receive.buffer.bytes", "-1", "start", spec("CFG-014")),  # decision 0013
    ("socket.request.max.bytes", "104857600", "start", spec("CFG-015")),
    ("connection.failed.authentication.delay.ms", "100", "start"),
    ("connections.max.idle.ms", "600000", "start", spec("CFG-017")),
    ("max.connections.per.ip", INT_MAX, "cluster", spec("CFG-018")),
    ("max.connections", INT_MAX, "cluster", spec("CFG-018")),
    ("max.connections.per.ip.overrides", "", "cluster", spec("CFG-018")),
    ("max.incremental.fetch.session.cache.slots", "1000", "start", spec("CFG-076")),
    ("fetch.purgatory.purge.interval.requests", "1000", "start", spec("CFG-077")),
    ("producer.purgatory.purge.interval.requests", "1000", "start", spec("CFG-077")),
    ("delete.records.purgatory.purge.interval.requests", "1", "start", spec("CFG-077")),
    ("inter.broker.listener.name", None, "start"),
    ("security.inter.broker.protocol", "PLAINTEXT", "start"),
    ("socket.listen.backlog.size", "50", "start"),
    ("queued.max.request.bytes", "-1", "start"),
    ("background.threads", "10", "cluster"),
    ("request.timeout.ms", "30000", "start"),
    ("socket.connection.setup.timeout.ms", "10000", "start"),
    ("socket.connection.setup.timeout.max.ms", "30000", "start"),
    ("fetch.max.bytes", "57671680", "start"),
    ("max.request.partition.size.limit", "2000", "start"),
    ("max.inflight.requests.per.connection", "100", "start"),
    ("metrics.port", None, "start"),
    ("metrics.host", None, "start"),
    ("memory.limit.bytes", "-1", "start"),
    ("max.connection.creation.rate", INT_MAX, "cluster"),
]


@pytest.mark.parametrize(("name", "text", "scope"), marked(ROWS))
def test_a_network_setting_has_the_default_of_kafka_4_2_or_a_decision(
    name: str, text: str | None, scope: str
) -> None:
    check(NetworkSettings, name, text, scope)


def test_every_network_setting_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == set(NetworkSettings.SETTINGS)
