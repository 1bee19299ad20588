"""Settings as Apache Kafka and Ottla describe and change them, side by side.

Both are started with the same static settings and asked the same. What differs by intent is in
`MEANT` and `MEANT_ALTERATIONS`, each with its reason; anything else fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.properties import load
from ottla.config.retired import translate
from ottla.model.errors import UserError
from tests.cluster.process import wait_for
from tests.raw_requests import Line, create_topics
from tools import kafka_cache, nodes

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL = 32, 33, 44
STORAGE_TOPIC = "settings"

# Said to both, so that sources and synonyms have something to show.
STATIC: Final = {
    **nodes.RECOMMENDED,
    "log.retention.hours": "24",
    "log.roll.ms": "3600000",
    "log.cleanup.policy": "delete,compact",
    "log.flush.interval.ms": "10000",
    "message.max.bytes": "2000000",
}
OWN: Final = frozenset({"broker.id", "listeners", "log.dirs"})
"""Each node has its own: only the kind of the value is compared."""

_ELR: Final = "KRaft stores it for the cluster while eligible leader replicas are enabled"
_EMBEDDED: Final = "our default suits a single broker without configuration"

MEANT: Final = {
    "group.coordinator.rebalance.protocols": "streams groups are not offered",
    "listener.security.protocol.map": "the same pairs in the order of a Java hash map",
    "log.dir": _EMBEDDED,
    "log.retention.hours": "Kafka shows the default for it once log.retention.ms is set live",
    "min.insync.replicas": _ELR,
    "socket.receive.buffer.bytes": "the system sizes the buffer: docs/decisions/0013",
    "transaction.two.phase.commit.enable": "two-phase commit needs no further switch here",
}
"""Settings whose value, source or synonyms differ by intent. Type and flags never do."""

NOT_HERE: Final = (
    "consumer.assignment.interval.ms",  # new in 4.3; assignments are made when they are needed
    "local.retention.",
    "remote.",
    "share.",
    "streams.",
)
"""Topic and group settings of Kafka's features that are not offered."""

ONLY_OURS: Final = {"flush.before.ack", "record.validation"}

KNOWN_THERE: Final = "Kafka knows this name and acts on it; the feature is not offered here"
MEANT_ALTERATIONS: Final = {
    ("log.retention.ms", "-5"): "Kafka takes it and then keeps records for ever",
    ("min.cleanable.dirty.ratio", "0.5f"): "only Java writes a number like this",
    ("remote.storage.enable", "false"): KNOWN_THERE,
    ("min.insync.replicas", "2"): _ELR,
}


class Pair(NamedTuple):
    kafka: Line
    ottla: Line

    def broker_names(self) -> list[tuple[Line, str]]:
        return [(self.kafka, "1"), (self.ottla, "0")]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("settings")
    try:
        with (
            nodes.kafka(folder / "kafka", STATIC, options=nodes.QUICK_JVM) as kafka,
            nodes.ottla(folder / "ottla", STATIC) as ours,
            Line(kafka.bootstrap) as kafka_line,
            Line(ours.bootstrap) as our_line,
        ):
            for line in (kafka_line, our_line):
                create_topics(line, [STORAGE_TOPIC])
            yield Pair(kafka_line, our_line)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))


def described(line: Line, kind: int, name: str) -> dict[str, Any]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    reply = line.ask(
        DESCRIBE_CONFIGS, 4,
        resources=[resource], include_synonyms=True, include_documentation=False,
    )  # fmt: skip
    [result] = reply.results
    assert result.error_code == 0, result
    return {config.name: config for config in result.configs}


def shape(config: Any) -> tuple[object, ...]:
    """What must always agree."""
    return (config.name, config.read_only, config.is_sensitive, config.config_type)


def content(config: Any) -> tuple[object, ...]:
    synonyms = [(s.name, s.value, s.source) for s in config.synonyms]
    return (config.value, config.config_source, synonyms)


def differences(kafka: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    common = sorted(set(kafka) & set(ours))
    lines = [
        f"{name}: {shape(kafka[name])} but here {shape(ours[name])}"
        for name in common
        if shape(kafka[name]) != shape(ours[name])
    ]
    return lines + [
        f"{name}: {content(kafka[name])} but here {content(ours[name])}"
        for name in common
        if name not in MEANT and name not in OWN and content(kafka[name]) != content(ours[name])
    ]


def test_a_brokers_settings_are_described_as_kafka_describes_them(pair: Pair) -> None:
    kafka, ours = (described(line, BROKER, name) for line, name in pair.broker_names())
    assert len(set(kafka) & set(ours)) > 120
    assert differences(kafka, ours) == []
    alike = {one for one in MEANT if one in kafka and content(kafka[one]) == content(ours[one])}
    # Whether that one differs depends on what other tests have set before.
    assert alike <= {"log.retention.hours"}, "a difference that is gone needs no reason"
    assert ours["advertised.listeners"].read_only
    assert ours["log.cleanup.policy"].value == "delete,compact"


def _fault(name: str, config: Any) -> str | None:
    """Why a setting that Kafka describes like this does not load, or is not known."""
    text = "a secret" if config.is_sensitive else config.value
    try:
        if text is None:  # it is set nowhere
            warnings = translate({name: ""}, BrokerConfig.SETTINGS).warnings
        else:
            warnings = load(sets=[f"{name}={text}"]).warnings
    except UserError as error:
        return str(error)
    return next((line for line in warnings if "unknown setting" in line), None)


def test_every_setting_that_kafka_describes_loads_and_is_known(pair: Pair) -> None:
    """With the value that it has there, as it may stand in an existing server.properties."""
    faults = {
        name: _fault(name, config)
        for name, config in described(pair.kafka, BROKER, "1").items()
        if name not in OWN
    }
    assert len(faults) > 200
    assert {name: said for name, said in faults.items() if said} == {}


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, STORAGE_TOPIC), (GROUP, "readers")])
def test_a_topics_and_a_groups_settings_are_described_as_kafka_describes_them(
    pair: Pair, kind: int, name: str
) -> None:
    kafka, ours = (described(line, kind, name) for line in pair)
    assert differences(kafka, ours) == []
    assert [one for one in kafka if one not in ours and not one.startswith(NOT_HERE)] == []
    assert set(ours) - set(kafka) <= ONLY_OURS


Alteration = tuple[str, int, str | None]


def alter(line: Line, kind: int, name: str, *changes: Alteration, dry: bool = True) -> int:
    configs = [{"name": n, "config_operation": op, "value": v} for n, op, v in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    reply = line.ask(INCREMENTAL, 1, resources=[resource], validate_only=dry)
    return int(reply.responses[0].error_code)


def replace(line: Line, kind: int, name: str, *changes: Alteration) -> int:
    configs = [{"name": n, "value": v} for n, _, v in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    reply = line.ask(ALTER_CONFIGS, 2, resources=[resource], validate_only=True)
    return int(reply.responses[0].error_code)


@pytest.mark.parametrize("whole_cluster", [False, True])
def test_what_may_change_while_the_broker_runs_is_what_may_change_in_kafka(
    pair: Pair, whole_cluster: bool
) -> None:
    """Every common setting is set to the value it has."""
    kafka, ours = (described(line, BROKER, name) for line, name in pair.broker_names())
    codes: dict[str, list[int]] = {}
    for name in sorted((set(kafka) & set(ours)) - MEANT.keys()):
        for (line, broker), entries in zip(pair.broker_names(), (kafka, ours), strict=True):
            value = entries[name].value
            change = (name, SET, "1" if value is None else value)
            code = alter(line, BROKER, "" if whole_cluster else broker, change)
            codes.setdefault(name, []).append(code)
    assert {name: both for name, both in codes.items() if both[0] != both[1]} == {}


BROKER_CHANGES: Final[list[tuple[Alteration, ...]]] = [
    (("my.plugin.key", SET, "x"),),
    (("my.plugin.key", DELETE, None),),
    (("my.plugin.key", APPEND, "x"),),
    (("my.plugin.key", SUBTRACT, "x"),),
    (("my.plugin.key", SET, None),),
    (("", SET, "x"),),
    (("retention.ms", SET, "5"),),
    (("leader.replication.throttled.rate", SET, "1000"),),
    (("advertised.listeners", SET, "PLAINTEXT://127.0.0.1:9092"),),
    (("advertised.listeners", DELETE, None),),
    (("log.cleanup.policy", SET, "compact,delete"),),
    (("log.cleanup.policy", SET, ""),),
    (("log.cleanup.policy", APPEND, "compact"),),
    (("log.cleanup.policy", APPEND, "burn"),),
    (("log.cleanup.policy", SUBTRACT, "delete"),),
    (("log.retention.ms", SET, "abc"),),
    (("log.retention.ms", SET, ""),),
    (("log.retention.ms", SET, "-5"),),
    (("log.retention.ms", APPEND, "1"),),
    (("log.retention.ms", SET, "1"), ("log.retention.ms", SET, "2")),
    (("log.dirs", APPEND, "x"),),
    (("log.dirs", DELETE, None),),
    (("max.connections.per.ip.overrides", SET, "x"),),
    (("num.io.threads", SET, "4"),),
    (("num.io.threads", SET, "3"),),
    (("num.io.threads", SET, "17"),),
    (("num.io.threads", SET, "0"),),
    (("num.network.threads", SET, "7"),),
    (("num.replica.fetchers", SET, "3"),),
    (("num.recovery.threads.per.data.dir", SET, "5"),),
    (("background.threads", SET, "21"),),
    (("background.threads", SET, "4"),),
    (("log.cleaner.threads", SET, "3"),),
    (("ssl.keystore.password", SET, "x"),),
    (("sasl.jaas.config", SET, "x"),),
    (("listener.name.plaintext.ssl.keystore.location", SET, "/x"),),
    (("max.connection.creation.rate", SET, "5"),),
    (("min.insync.replicas", SET, "2"),),
    (),
]

TOPIC_CHANGES: Final[list[tuple[Alteration, ...]]] = [
    (("cleanup.policy", SET, "delete,compact"),),
    (("cleanup.policy", SET, " delete , compact "),),
    (("cleanup.policy", SET, "delete,delete"),),
    (("cleanup.policy", SET, ""),),
    (("cleanup.policy", APPEND, "compact"),),
    (("cleanup.policy", APPEND, "burn"),),
    (("cleanup.policy", APPEND, None),),
    (("cleanup.policy", SUBTRACT, "delete"),),
    (("cleanup.policy", SUBTRACT, "burn"),),
    (("retention.ms", APPEND, "5"),),
    (("retention.ms", SET, None),),
    (("retention.ms", SET, ""),),
    (("retention.ms", SET, " 7 "),),
    (("retention.ms", SET, "-2"),),
    (("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    (("no.such", SET, "x"),),
    (("no.such", DELETE, None),),
    (("no.such", APPEND, "x"),),
    (("min.insync.replicas", SET, "0"),),
    (("min.insync.replicas", SET, "5"),),
    (("compression.type", SET, "ZSTD"),),
    (("unclean.leader.election.enable", SET, "TRUE"),),
    (("unclean.leader.election.enable", SET, "maybe"),),
    (("segment.bytes", SET, "1e9"),),
    (("segment.bytes", SET, "100"),),
    (("max.message.bytes", SET, "+5"),),
    (("min.cleanable.dirty.ratio", SET, "0.5f"),),
    (("leader.replication.throttled.replicas", SET, "0:1,1:2"),),
    (("leader.replication.throttled.replicas", SET, "none"),),
    (("remote.storage.enable", SET, "true"),),
    (("remote.storage.enable", SET, "false"),),
    (("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "50")),
]


def is_meant(changes: tuple[Alteration, ...]) -> bool:
    return any((name, value) in MEANT_ALTERATIONS for name, _, value in changes)


@pytest.mark.parametrize("changes", BROKER_CHANGES, ids=str)
def test_a_change_to_a_broker_is_taken_or_refused_as_kafka_does(
    pair: Pair, changes: tuple[Alteration, ...]
) -> None:
    names = pair.broker_names()
    codes = [alter(line, BROKER, name, *changes) for line, name in names]
    assert (codes[0] == codes[1]) != is_meant(changes), codes
    if not is_meant(changes):
        codes = [alter(line, BROKER, "", *changes) for line in pair]
        assert codes[0] == codes[1]
        if all(operation == SET for _, operation, _ in changes):
            codes = [replace(line, BROKER, name, *changes) for line, name in names]
            assert codes[0] == codes[1]


@pytest.mark.parametrize("changes", TOPIC_CHANGES, ids=str)
def test_a_change_to_a_topic_is_taken_or_refused_as_kafka_does(
    pair: Pair, changes: tuple[Alteration, ...]
) -> None:
    codes = [alter(line, TOPIC, STORAGE_TOPIC, *changes) for line in pair]
    assert (codes[0] == codes[1]) != is_meant(changes), codes
    if all(operation == SET for _, operation, _ in changes) and not is_meant(changes):
        codes = [replace(line, TOPIC, STORAGE_TOPIC, *changes) for line in pair]
        assert codes[0] == codes[1]


@pytest.mark.parametrize("name", ["", "no-such-topic", "a/b"])
def test_a_topic_that_cannot_be_changed_is_refused_as_kafka_does(pair: Pair, name: str) -> None:
    codes = [alter(line, TOPIC, name, ("retention.ms", SET, "5")) for line in pair]
    assert codes[0] == codes[1] != 0


STEPS: Final[list[tuple[int, str, Alteration]]] = [
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SET, "compact,delete")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SET, "delete,compact")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SUBTRACT, "delete")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", APPEND, "delete")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SET, " delete , compact ")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SET, "delete,delete")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SUBTRACT, "delete")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SET, "")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", DELETE, None)),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", SUBTRACT, "delete")),
    (TOPIC, STORAGE_TOPIC, ("cleanup.policy", DELETE, None)),
    (TOPIC, STORAGE_TOPIC, ("retention.ms", SET, " 7 ")),
    (TOPIC, STORAGE_TOPIC, ("unclean.leader.election.enable", SET, "TRUE")),
    (TOPIC, STORAGE_TOPIC, ("min.cleanable.dirty.ratio", SET, "0.50")),
    (TOPIC, STORAGE_TOPIC, ("retention.ms", DELETE, None)),
    (BROKER, "all", ("log.cleanup.policy", SET, "compact,delete")),
    (BROKER, "one", ("log.cleanup.policy", SET, "delete")),
    (BROKER, "one", ("log.cleanup.policy", APPEND, "compact")),
    (BROKER, "one", ("log.cleanup.policy", DELETE, None)),
    (BROKER, "all", ("log.cleanup.policy", DELETE, None)),
    (BROKER, "all", ("log.retention.ms", SET, "777")),
    (BROKER, "one", ("log.retention.ms", SET, "888")),
    (BROKER, "all", ("my.plugin.key", SET, "x")),
    (BROKER, "one", ("my.plugin.key", SET, "y")),
    (BROKER, "one", ("my.plugin.key", DELETE, None)),
    (BROKER, "all", ("my.plugin.key", DELETE, None)),
    (GROUP, "readers", ("consumer.session.timeout.ms", SET, "46000")),
    (GROUP, "readers", ("consumer.session.timeout.ms", DELETE, None)),
]


def disagreements(pair: Pair) -> list[str]:
    """What the two describe differently at this moment."""
    resources = [(TOPIC, STORAGE_TOPIC), (BROKER, ""), (BROKER, "one"), (GROUP, "readers")]
    found: list[str] = []
    for kind, name in resources:
        kafka, ours = (
            described(line, kind, broker if name == "one" else name)
            for line, broker in pair.broker_names()
        )
        found += differences(kafka, ours)
        if ("my.plugin.key" in kafka) != ("my.plugin.key" in ours):
            found.append("my.plugin.key is described by one of them only")
    return found


def test_a_history_of_changes_is_described_alike_after_each_step(pair: Pair) -> None:
    for kind, name, change in STEPS:
        for line, broker in pair.broker_names():
            resource = {"all": "", "one": broker}.get(name, name)
            assert alter(line, kind, resource, change, dry=False) == 0, (kind, name, change)
        # A change is in force a moment after it was answered, here and there.
        with suppress(AssertionError):
            wait_for(lambda: not disagreements(pair), 5)
        assert disagreements(pair) == [], (kind, name, change)
