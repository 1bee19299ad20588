"""Files written for Kafka load here, and say what has no effect."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.properties import load, parse
from ottla.config.retired import NOT_OFFERED, REPLACED, translate

KRAFT = """
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_settings_of_a_kraft_broker_load() -> None:
    texts, warnings = translate(parse(KRAFT), BrokerConfig.SETTINGS)
    config = BrokerConfig.parse(texts)
    assert config.broker_id == 7
    assert config.listeners == ("PLAINTEXT://:9092",)
    assert config.advertised_listeners == ("PLAINTEXT://localhost:9092",)
    assert config.data_dirs == ("/tmp/kraft-combined-logs",)
    assert [line.split()[0] for line in warnings] == [
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "node.id",
        "process.roles",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
    ]


@pytest.mark.spec("CFG-005", "CFG-036", "CFG-060", "CFG-071")
@pytest.mark.parametrize("name", list(REPLACED))
def test_an_obsolete_name_is_accepted_with_one_line_that_says_what_to_do(name: str) -> None:
    loaded = load(sets=[f"{name}=1"])
    assert loaded.warnings == [f"{name} is obsolete: {REPLACED[name]}"]


@pytest.mark.parametrize("name", list(NOT_OFFERED))
def test_a_setting_we_do_not_offer_is_accepted_with_its_reason(name: str) -> None:
    key = f"{name}something" if name.endswith(".") else name
    loaded = load(sets=[f"{key}=1"])
    assert loaded.warnings == [f"{key} has no effect: {NOT_OFFERED[name]}"]
    assert key not in loaded.texts


def test_no_setting_of_ours_is_called_retired() -> None:
    ours = set(BrokerConfig.SETTINGS)
    assert not ours & (set(REPLACED) | set(NOT_OFFERED))
    prefixes = tuple(name for name in NOT_OFFERED if name.endswith("."))
    assert [name for name in ours if name.startswith(prefixes)] == []


@pytest.mark.spec("CFG-005")
def test_the_old_host_and_port_still_say_where_to_listen() -> None:
    config = load(sets=["host.name=box", "port=9999"]).config
    assert config.listeners == ("PLAINTEXT://box:9999",)
    config = load(sets=["port=9999", "listeners=PLAINTEXT://:1"]).config
    assert config.listeners == ("PLAINTEXT://:1",)
    config = load(sets=["advertised.host.name=outside", "advertised.port=1234"]).config
    assert config.advertised_listeners == ("PLAINTEXT://outside:1234",)


def test_a_name_like_nothing_we_know_gets_no_guess() -> None:
    [line] = load(sets=["my.very.own.thing=1"]).warnings
    assert line == "my.very.own.thing has no effect: unknown setting"
