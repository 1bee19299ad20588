"""Settings of topics, brokers, loggers and groups: described and altered."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.answers.scenario import ALL, Ask, Scenario, ask, scenario, topic

TOPIC: Final = 2
BROKER: Final = 4
LOGGER: Final = 8
METRICS: Final = 16
GROUP: Final = 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(versions: int | range, kind: int, name: str, *keys: str, **more: Any) -> Ask:
    resource = {
        "resource_type": kind,
        "resource_name": name,
        "configuration_keys": list(keys) or None,
    }
    return ask("DescribeConfigs", versions, resources=[resource], **more)


def change(kind: int, name: str, *changes: tuple[str, int, str | None], **more: Any) -> Ask:
    """Settings altered one by one: name, operation, value."""
    configs = [{"name": k, "config_operation": op, "value": value} for k, op, value in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    versions = more.pop("versions", ALL)
    return ask("IncrementalAlterConfigs", versions, **{"resources": [resource], **more})


def replace(kind: int, name: str, versions: int | range = ALL, **settings: str | None) -> Ask:
    """All settings of a resource replaced."""
    validate_only = settings.pop("validate_only", None) is not None
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in settings.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    return ask("AlterConfigs", versions, resources=[resource], validate_only=validate_only)


TOPIC_KEYS: Final = (
    "cleanup.policy", "compression.type", "retention.ms", "retention.bytes", "segment.bytes",
    "segment.ms", "max.message.bytes", "min.insync.replicas", "message.timestamp.type",
    "delete.retention.ms", "min.cleanable.dirty.ratio", "unclean.leader.election.enable",
    "flush.ms", "flush.messages", "index.interval.bytes", "preallocate", "file.delete.delay.ms",
    "message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "segment.index.bytes",
    "segment.jitter.ms", "min.compaction.lag.ms", "max.compaction.lag.ms",
    "compression.gzip.level", "compression.lz4.level", "compression.zstd.level",
    "leader.replication.throttled.replicas", "follower.replication.throttled.replicas",
)  # fmt: skip
BROKER_KEYS: Final = (
    "log.retention.hours", "log.retention.ms", "log.segment.bytes", "log.cleanup.policy",
    "message.max.bytes", "auto.create.topics.enable",
    "default.replication.factor", "num.partitions", "compression.type", "min.insync.replicas",
    "offsets.retention.minutes", "group.initial.rebalance.delay.ms", "transaction.max.timeout.ms",
    "log.cleaner.threads", "unclean.leader.election.enable", "connections.max.idle.ms",
    "max.connections", "log.roll.hours", "replica.fetch.max.bytes",
    "group.max.session.timeout.ms", "group.min.session.timeout.ms", "delete.topic.enable",
    "log.flush.interval.messages", "log.index.interval.bytes", "fetch.max.bytes",
    "transactional.id.expiration.ms", "log.message.timestamp.type", "ssl.keystore.password",
)  # fmt: skip
TWICE: Final = ("retention.ms", SET, "1")
BAD_CHANGES: Final[dict[str, tuple[tuple[str, int, str | None], ...]]] = {
    "an unknown setting": (("no.such", SET, "1"),),
    "an unknown setting deleted": (("no.such", DELETE, None),),
    "a value that is no number": (("retention.ms", SET, "soon"),),
    "a value out of range": (("segment.bytes", SET, "1"),),
    "no value": (("retention.ms", SET, None),),
    "an unknown operation": (("retention.ms", 9, "1"),),
    "a setting twice": (TWICE, TWICE),
    "an append to what is no list": (("retention.ms", APPEND, "1"),),
    "a subtraction from what is no list": (("retention.ms", SUBTRACT, "1"),),
    "an append of an unknown policy": (("cleanup.policy", APPEND, "shred"),),
    "no changes": (),
    "an empty name": (("", SET, "1"),),
    "an empty value": (("retention.ms", SET, ""),),
    "an unknown codec": (("compression.type", SET, "brotli"),),
}
SCENARIOS: Final[tuple[Scenario, ...]] = (
    *(
        scenario(
            f"a topic's {key}", topic("$t"), describe(ALL, TOPIC, "$t", key, include_synonyms=False)
        )
        for key in TOPIC_KEYS
    ),
    scenario(
        "a topic's settings with what they stand for",
        topic("$t", retention_ms="5000"),
        describe(ALL, TOPIC, "$t", *TOPIC_KEYS, include_synonyms=True),
    ),
    scenario("all of a topic's settings", topic("$t"), describe(4, TOPIC, "$t")),
    scenario(
        "topics that have no settings",
        describe(ALL, TOPIC, "$nothing"),
        describe(ALL, TOPIC, ""),
        describe(4, TOPIC, "a/b"),
    ),
    scenario(
        "settings that nobody has",
        topic("$t"),
        describe(ALL, TOPIC, "$t", "no.such"),
        ask("DescribeConfigs", ALL, resources=[]),
        ask(
            "DescribeConfigs",
            4,
            resources=[{"resource_type": TOPIC, "resource_name": "$t", "configuration_keys": []}],
        ),
    ),
    *(scenario(f"a broker's {key}", describe(4, BROKER, "1", key)) for key in BROKER_KEYS),
    scenario(
        "settings of odd resources",
        describe(ALL, BROKER, "7"),
        describe(4, BROKER, "x"),
        describe(4, BROKER, "-1"),
        describe(4, BROKER, "", "log.retention.ms"),
        describe(4, 0, "x"),
        describe(4, 99, "x"),
        describe(4, LOGGER, "7"),
        describe(4, GROUP, ""),
    ),
    scenario("settings of telemetry", describe(4, METRICS, "$m"), describe(4, METRICS, "")),
    scenario(
        "settings of a group",
        describe(ALL, GROUP, "$g", "consumer.session.timeout.ms"),
        change(GROUP, "$g", ("consumer.session.timeout.ms", SET, "50000")),
        describe(4, GROUP, "$g", "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
        change(GROUP, "$g", ("consumer.session.timeout.ms", SET, "1")),
        change(GROUP, "$g", ("no.such", SET, "1")),
        change(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
        change(GROUP, "$g", ("consumer.session.timeout.ms", DELETE, None)),
    ),
    *(
        scenario(
            f"alter a topic with {what}",
            topic("$t"),
            change(TOPIC, "$t", *changes),
            describe(4, TOPIC, "$t", "retention.ms", "cleanup.policy"),
        )
        for what, changes in BAD_CHANGES.items()
    ),
    scenario(
        "alter a topic",
        topic("$t"),
        change(TOPIC, "$t", ("retention.ms", SET, "1000"), validate_only=True),
        describe(4, TOPIC, "$t", "retention.ms"),
        change(TOPIC, "$t", ("retention.ms", SET, "1000"), ("segment.ms", SET, "2000")),
        describe(ALL, TOPIC, "$t", "retention.ms", "segment.ms", include_synonyms=True),
        change(TOPIC, "$t", ("cleanup.policy", APPEND, "compact")),
        describe(4, TOPIC, "$t", "cleanup.policy"),
        change(TOPIC, "$t", ("cleanup.policy", APPEND, "compact")),
        change(TOPIC, "$t", ("cleanup.policy", SUBTRACT, "delete")),
        describe(4, TOPIC, "$t", "cleanup.policy"),
        change(TOPIC, "$t", ("retention.ms", DELETE, None)),
        describe(4, TOPIC, "$t", "retention.ms", "segment.ms"),
        replace(TOPIC, "$t", retention_bytes="1000"),
        describe(4, TOPIC, "$t", "retention.bytes", "segment.ms", "cleanup.policy"),
        replace(TOPIC, "$t", validate_only="yes", retention_bytes="2000"),
        replace(TOPIC, "$t", no_such="1"),
        replace(TOPIC, "$t", retention_ms="soon"),
        replace(TOPIC, "$t", retention_ms=None),
        replace(TOPIC, "$nothing", retention_ms="1"),
        replace(TOPIC, "$t"),
        describe(4, TOPIC, "$t", "retention.bytes"),
        ask("AlterConfigs", ALL, resources=[]),
        ask("IncrementalAlterConfigs", ALL, resources=[]),
    ),
    scenario(
        "alter what is not there",
        change(TOPIC, "$nothing", ("retention.ms", SET, "1")),
        change(TOPIC, "", ("retention.ms", SET, "1")),
        change(BROKER, "7", ("log.retention.ms", SET, "1")),
        change(BROKER, "x", ("log.retention.ms", SET, "1")),
        change(0, "x", ("a", SET, "1")),
        change(99, "x", ("a", SET, "1")),
        change(LOGGER, "7", ("root", SET, "INFO")),
        change(LOGGER, "1", ("root", SET, "LOUD")),
        change(LOGGER, "1", ("no.such.logger", SET, "INFO")),
        change(LOGGER, "1", ("root", APPEND, "INFO")),
    ),
    scenario(
        "alter a broker",
        change(BROKER, "1", ("log.retention.ms", SET, "9000000"), validate_only=True),
        change(BROKER, "1", ("log.retention.ms", SET, "9000000")),
        describe(4, BROKER, "1", "log.retention.ms", include_synonyms=True),
        change(BROKER, "1", ("log.retention.ms", DELETE, None)),
        describe(4, BROKER, "1", "log.retention.ms"),
        change(BROKER, "", ("log.retention.ms", SET, "8000000")),
        describe(4, BROKER, "", "log.retention.ms"),
        describe(4, BROKER, "1", "log.retention.ms", include_synonyms=True),
        change(BROKER, "", ("log.retention.ms", DELETE, None)),
        change(BROKER, "1", ("broker.id", SET, "5")),
        change(BROKER, "1", ("log.retention.ms", SET, "soon")),
        change(BROKER, "1", ("num.partitions", SET, "5")),
        change(BROKER, "1", ("my.own.setting", SET, "5")),
        change(BROKER, "1", ("my.own.setting", DELETE, None)),
    ),
    scenario(
        "resources with settings",
        topic("$t", retention_ms="1000"),
        ask("ListConfigResources", 0),
        *(
            ask("ListConfigResources", 1, resource_types=[kind])
            for kind in (TOPIC, BROKER, LOGGER, GROUP, METRICS, 99)
        ),
        ask("ListConfigResources", 1, resource_types=[]),
    ),
)
