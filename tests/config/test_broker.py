"""The settings of a broker together: its own, the rules between them, what is refused."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.settings import Type
from ottla.model.errors import UserError
from tests.config.defaults import Row, check, marked, spec

ROWS: list[Row] = [
    ("broker.id", "0", "start", spec("CFG-001")),
    ("broker.id.generation.enable", "true", "start", spec("CFG-002")),
    ("reserved.broker.max.id", "1000", "start", spec("CFG-003")),
    ("auto.create.topics.enable", "true", "start", spec("CFG-021")),
    ("num.partitions", "1", "start", spec("CFG-022")),
    ("delete.topic.enable", "true", "start", spec("CFG-058")),
    ("broker.rack", None, "start"),
]


@pytest.mark.parametrize(("name", "text", "scope"), marked(ROWS))
def test_a_setting_of_the_broker_has_its_default(name: str, text: str | None, scope: str) -> None:
    check(BrokerConfig, name, text, scope)


REFUSED = [
    ({"num.partitions": "many"}, "num.partitions='many': expected a whole number"),
    ({"num.partitions": "0"}, "num.partitions='0': expected at least 1"),
    ({"num.partitions": "-3"}, "num.partitions='-3': expected at least 1"),
    ({"num.partitions": "99999999999"}, "num.partitions='99999999999': expected a whole"),
    ({"log.retention.ms": "9" * 20}, "log.retention.ms="),
    ({"log.retention.ms": "0"}, "log.retention.ms='0': expected at least 1 or -1"),
    ({"log.retention.hours": "-2"}, "log.retention.hours="),
    ({"log.segment.bytes": "1000"}, "log.segment.bytes='1000': expected at least 1048576"),
    ({"zookeeper.connect": "a:1:2"}, "zookeeper.connect='a:1:2': expected host:port"),
    ({"zookeeper.connect": "a:1,,b:1"}, "zookeeper.connect='a:1,,b:1': expected host:port"),
    ({"zookeeper.connect": "a:1//c"}, "zookeeper.connect='a:1//c': expected host:port"),
    ({"log.cleanup.policy": "shred"}, "log.cleanup.policy='shred': expected one of compact"),
    ({"compression.type": "brotli"}, "compression.type="),
    ({"compression.gzip.level": "0"}, "compression.gzip.level="),
    ({"compression.lz4.level": "18"}, "compression.lz4.level="),
    ({"compression.zstd.level": "23"}, "compression.zstd.level="),
    ({"log.cleaner.min.cleanable.ratio": "1.5"}, "log.cleaner.min.cleanable.ratio="),
    ({"auto.create.topics.enable": "maybe"}, "auto.create.topics.enable="),
    ({"flush.before.ack": "sometimes"}, "flush.before.ack='sometimes': expected one of auto"),
    ({"record.validation": "none"}, "record.validation="),
    ({"broker.id": "-2"}, "broker.id="),
    ({"broker.id": "1001"}, "broker.id=1001: expected at most reserved.broker.max.id"),
    ({"broker.id": "-1", "broker.id.generation.enable": "false"}, "broker.id=-1"),
    ({"log.dirs": "/a,/b,/a"}, "log.dirs=/a,/b,/a: a directory is listed more than once"),
    (
        {"log.dirs": "/a,,/b"},
        "log.dirs: expected a comma-separated list of directories without empty",
    ),
    ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size=1048576"),
    ({"replica.fetch.wait.max.ms": "31000"}, "replica.fetch.wait.max.ms=31000"),
    (
        {"replica.fetch.wait.max.ms": "20000", "replica.lag.time.max.ms": "10000"},
        "replica.fetch.wait.max.ms=20000: expected at most replica.lag.time.max.ms",
    ),
    ({"group.consumer.assignors": ""}, "group.consumer.assignors: expected at least one of"),
    (
        {
            "group.consumer.heartbeat.interval.ms": "15000",
            "group.consumer.min.session.timeout.ms": "10000",
            "group.consumer.session.timeout.ms": "12000",
        },
        "group.consumer.heartbeat.interval.ms=15000: expected less than",
    ),
    ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes: expected at least socket."),
    ({"max.connections.per.ip": "0"}, "max.connections.per.ip=0: needs"),
    ({"max.connections.per.ip.overrides": "host"}, "max.connections.per.ip.overrides='host'"),
    ({"max.connections.per.ip.overrides": "host:x"}, "max.connections.per.ip.overrides='host:x'"),
    ({"connections.max.idle.ms": "50"}, "connection.failed.authentication.delay.ms: expected"),
    ({"group.min.session.timeout.ms": "1800001"}, "group.min.session.timeout.ms=1800001"),
    ({"group.consumer.session.timeout.ms": "1"}, "group.consumer.session.timeout.ms=1: expected"),
    (
        {"group.consumer.heartbeat.interval.ms": "15001"},
        "group.consumer.heartbeat.interval.ms=15001",
    ),
    ({"listeners": "PLAINTEXT://:9092,IN://:9092"}, "listeners='IN://:9092'"),
    ({"transaction.state.log.replication.factor": "40000"}, "transaction.state.log.replication"),
]


@pytest.mark.parametrize(("texts", "said"), REFUSED, ids=lambda v: str(v)[:60])
def test_a_bad_setting_is_refused_naming_the_key(texts: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as refusal:
        BrokerConfig.parse(texts)
    assert str(refusal.value).startswith(said)


NUMBERS = [
    name
    for name, setting in BrokerConfig.SETTINGS.items()
    if setting.kind in (Type.INT, Type.SHORT, Type.LONG, Type.DOUBLE)
]


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_takes_a_word_a_negative_below_its_bound_or_an_overflow(name: str) -> None:
    setting = BrokerConfig.SETTINGS[name]
    bad = ["word", "-131073", "1" + "0" * 400]
    for text in bad if setting.kind is not Type.DOUBLE else bad[:2]:
        with pytest.raises(UserError, match=rf"^{name}="):
            BrokerConfig.parse({name: text})


@pytest.mark.spec("CFG-024", "CFG-025", "CFG-026")
@pytest.mark.parametrize(
    ("texts", "ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "1"}, 60_000),
        (
            {
                "log.retention.hours": "1",
                "log.retention.minutes": "1",
                "log.retention.ms": "5",
            },
            5,
        ),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
    ],
)
def test_the_finest_retention_setting_wins(texts: dict[str, str], ms: int) -> None:
    assert BrokerConfig.parse(texts).retention_ms == ms


@pytest.mark.spec("CFG-030", "CFG-031")
def test_the_finest_roll_setting_wins() -> None:
    assert BrokerConfig().roll_ms == 604_800_000
    assert BrokerConfig.parse({"log.roll.hours": "2"}).roll_ms == 7_200_000
    assert BrokerConfig.parse({"log.roll.hours": "2", "log.roll.ms": "9"}).roll_ms == 9
    assert BrokerConfig.parse({"log.roll.jitter.hours": "1"}).roll_jitter_ms == 3_600_000
    assert BrokerConfig.parse({"log.roll.jitter.ms": "7"}).roll_jitter_ms == 7


@pytest.mark.spec("CFG-019")
def test_several_directories_win_over_one() -> None:
    assert BrokerConfig().data_dirs == ("./data",)
    assert BrokerConfig.parse({"log.dir": "/a"}).data_dirs == ("/a",)
    assert BrokerConfig.parse({"log.dir": "/a", "log.dirs": "/b, /c"}).data_dirs == ("/b", "/c")


def test_flushing_by_time_falls_back_to_the_scheduler() -> None:
    assert BrokerConfig.parse({"log.flush.scheduler.interval.ms": "10"}).flush_ms == 10
    assert BrokerConfig.parse({"log.flush.interval.ms": "5"}).flush_ms == 5


@pytest.mark.spec("CFG-018")
def test_addresses_may_have_limits_of_their_own() -> None:
    config = BrokerConfig.parse(
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "10.0.0.1:5, ::1:7"}
    )
    assert config.connections_per_ip_overrides == {"10.0.0.1": 5, "::1": 7}


@pytest.mark.spec("CFG-001", "CFG-002", "CFG-003")
def test_a_broker_id_may_be_generated() -> None:
    assert BrokerConfig.parse({"broker.id": "-1"}).broker_id == -1
    assert BrokerConfig.parse({"broker.id": "2000", "reserved.broker.max.id": "2000"}).broker_id


def test_every_setting_says_what_it_does() -> None:
    for name, setting in BrokerConfig.SETTINGS.items():
        assert setting.doc, name
        assert len(setting.doc.partition(" No effect here")[0]) < 100, name
