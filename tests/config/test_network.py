from __future__ import annotations

import pytest

from ottla.config.network import NetworkSettings
from tests.config.defaults import Row, check, marked

INT_MAX = "2147483647"
ROWS: list[Row] = [
    ("listeners", "PLAINTEXT://:9092", ("CFG-006",)),
    ("advertised.listeners", None, ("CFG-007",)),
    (
        "listener.security.protocol.map",
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        ("CFG-008",),
    ),
    ("control.plane.listener.name", None, ("CFG-009",)),
    ("num.network.threads", "3", ("CFG-010",)),
    ("num.io.threads", "8", ("CFG-011",)),
    ("queued.max.requests", "500", ("CFG-012",)),
    ("socket.send.buffer.bytes", "102400", ("CFG-013",)),
    ("socket.receive.buffer.bytes", "102400", ("CFG-014",)),
    ("socket.request.max.bytes", "104857600", ("CFG-015",)),
    ("connection.failed.authentication.delay.ms", "100", ("CFG-016",)),
    ("connections.max.idle.ms", "600000", ("CFG-017",)),
    ("max.connections.per.ip", INT_MAX, ("CFG-018",)),
    ("max.connections", INT_MAX, ("CFG-018",)),
    ("max.connections.per.ip.overrides", "", ("CFG-018",)),
    ("max.connection.creation.rate", INT_MAX, ()),
    ("max.incremental.fetch.session.cache.slots", "1000", ("CFG-076",)),
    ("fetch.purgatory.purge.interval.requests", "1000", ("CFG-077",)),
    ("producer.purgatory.purge.interval.requests", "1000", ("CFG-077",)),
    ("delete.records.purgatory.purge.interval.requests", "1", ("CFG-077",)),
    ("inter.broker.listener.name", None, ()),
    ("security.inter.broker.protocol", "PLAINTEXT", ()),
    ("socket.listen.backlog.size", "50", ()),
    ("queued.max.request.bytes", "-1", ()),
    ("background.threads", "10", ()),
    ("request.timeout.ms", "30000", ()),
    ("socket.connection.setup.timeout.ms", "10000", ()),
    ("socket.connection.setup.timeout.max.ms", "30000", ()),
    ("fetch.max.bytes", "57671680", ()),
    ("max.request.partition.size.limit", "2000", ()),
    ("max.inflight.requests.per.connection", "100", ()),
    ("metrics.port", None, ()),
]


@pytest.mark.parametrize(("name", "text"), marked(ROWS))
def test_a_network_setting_has_the_default_of_kafka_4_2(name: str, text: str | None) -> None:
    check(NetworkSettings, name, text)


def test_every_network_setting_is_in_the_table() -> None:
    assert {name for name, _, _ in ROWS} == set(NetworkSettings.SETTINGS)
