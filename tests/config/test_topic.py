from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.topic import SYNONYMS, TopicConfig
from ottla.model.errors import UserError
from tests.config.defaults import Row, check, marked, spec

LONG_MAX = "9223372036854775807"
ROWS: list[Row] = [
    ("cleanup.policy", "delete", "topic", spec("CFG-038")),
    ("compression.type", "producer", "topic", spec("CFG-037")),
    ("compression.gzip.level", "-1", "topic"),
    ("compression.lz4.level", "9", "topic"),
    ("compression.zstd.level", "3", "topic"),
    ("delete.retention.ms", "86400000", "topic", spec("CFG-039")),
    ("file.delete.delay.ms", "60000", "topic", spec("CFG-042")),
    ("flush.before.ack", "auto", "topic"),
    ("flush.messages", LONG_MAX, "topic"),
    ("flush.ms", LONG_MAX, "topic"),
    ("follower.replication.throttled.replicas", "", "topic"),
    ("index.interval.bytes", "4096", "topic", spec("CFG-033")),
    ("internal.segment.bytes", None, "topic"),
    ("leader.replication.throttled.replicas", "", "topic"),
    ("max.compaction.lag.ms", LONG_MAX, "topic"),
    ("max.message.bytes", "1048588", "topic", spec("CFG-032")),
    ("message.timestamp.after.max.ms", "3600000", "topic"),
    ("message.timestamp.before.max.ms", LONG_MAX, "topic"),
    ("message.timestamp.type", "CreateTime", "topic", spec("CFG-035")),
    ("min.cleanable.dirty.ratio", "0.5", "topic", spec("CFG-040")),
    ("min.compaction.lag.ms", "0", "topic"),
    ("min.insync.replicas", "1", "topic", spec("CFG-053")),
    ("preallocate", "false", "topic"),
    ("record.validation", "auto", "topic"),
    ("retention.bytes", "-1", "topic", spec("CFG-027")),
    ("retention.ms", "604800000", "topic", spec("CFG-024")),
    ("segment.bytes", "1073741824", "topic", spec("CFG-029")),
    ("segment.index.bytes", "10485760", "topic", spec("CFG-034")),
    ("segment.jitter.ms", "0", "topic", spec("CFG-031")),
    ("segment.ms", "604800000", "topic", spec("CFG-030")),
    ("unclean.leader.election.enable", "false", "topic", spec("CFG-054")),
]


@pytest.mark.parametrize(("name", "text", "scope"), marked(ROWS))
def test_a_topic_setting_has_the_default_of_kafka_4_2(
    name: str, text: str | None, scope: str
) -> None:
    check(TopicConfig, name, text, scope)


def test_every_topic_setting_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == set(TopicConfig.SETTINGS)


def test_every_topic_setting_but_throttles_follows_a_broker_setting() -> None:
    alone = {name for name in TopicConfig.SETTINGS if name not in SYNONYMS}
    assert alone == {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    }
    for names in SYNONYMS.values():
        assert all(name in BrokerConfig.SETTINGS for name in names)


def test_a_topic_on_a_broker_with_defaults_has_the_defaults() -> None:
    assert TopicConfig.of(BrokerConfig()) == TopicConfig()
    assert vars(TopicConfig.of(BrokerConfig())) == {}


SAMPLES = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    "flush.before.ack": "never",
    "message.timestamp.type": "LogAppendTime",
    "record.validation": "header",
    "preallocate": "true",
    "unclean.leader.election.enable": "true",
    "min.cleanable.dirty.ratio": "0.25",
    "compression.lz4.level": "4",
    "compression.gzip.level": "4",
    "compression.zstd.level": "4",
}
IN_MS = {"hours": 3_600_000, "minutes": 60_000}


@pytest.mark.parametrize(
    ("name", "synonym"), [(name, synonym) for name, all_ in SYNONYMS.items() for synonym in all_]
)
def test_a_topic_follows_its_broker_until_it_overrides(name: str, synonym: str) -> None:
    text = SAMPLES.get(name, "2000000")
    broker = BrokerConfig.parse({synonym: text if "hours" not in synonym else "20"})
    inherited = TopicConfig.of(broker)
    unit = IN_MS.get(synonym.rpartition(".")[2], 1)
    if unit > 1:
        expected: object = int("20" if "hours" in synonym else text) * unit
    else:
        expected = TopicConfig.SETTINGS[name].read(text)
    assert inherited.value(name) == expected
    own = "1500000" if name not in SAMPLES else TopicConfig().text(name)
    assert own is not None
    assert TopicConfig.of(broker, {name: own}).text(name) == own


def test_a_test_may_ask_for_tiny_segments() -> None:
    assert TopicConfig.of(BrokerConfig(), {"internal.segment.bytes": "100"}).segment_bytes == 100
    broker = BrokerConfig.parse({"internal.segment.bytes": "200"})
    assert TopicConfig.of(broker).segment_bytes == 200


REFUSED = [
    ({"no.such": "1"}, "Unknown topic config name: no.such"),
    ({"retention.ms": "-2"}, "retention.ms='-2': expected at least -1"),
    ({"retention.ms": "soon"}, "retention.ms='soon': expected a whole number"),
    ({"segment.bytes": "1000"}, "segment.bytes='1000': expected at least 1048576"),
    ({"segment.bytes": "2147483648"}, "segment.bytes='2147483648': expected a whole number of"),
    ({"segment.ms": "0"}, "segment.ms="),
    ({"cleanup.policy": "delete,burn"}, "cleanup.policy="),
    ({"min.insync.replicas": "0"}, "min.insync.replicas="),
    ({"leader.replication.throttled.replicas": "1-2"}, "leader.replication.throttled.replicas="),
    (
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        "min.compaction.lag.ms=10: expected at most max.compaction.lag.ms, 5",
    ),
]


@pytest.mark.parametrize(("overrides", "said"), REFUSED, ids=lambda v: str(v)[:50])
def test_bad_overrides_are_refused_naming_the_key(overrides: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as refusal:
        TopicConfig.check(BrokerConfig(), overrides)
    assert str(refusal.value).startswith(said)


def test_good_overrides_pass() -> None:
    TopicConfig.check(
        BrokerConfig(),
        {
            "cleanup.policy": "compact,delete",
            "leader.replication.throttled.replicas": "0:1,1:2",
            "follower.replication.throttled.replicas": "*",
            "retention.ms": "-1",
        },
    )
