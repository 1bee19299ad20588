"""Names of Kafka settings that are not supported, each with its reason.

Owns: the warning for each unknown key, so that the server.properties of a Kafka broker loads with
warnings, and the old names that are translated to their new ones.
Never ignores a key that protects data: those are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple

REPLACED: Final[Mapping[str, str]] = {
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
    "controller.listener.names": "these listeners are ignored: the controller needs none",
    "group.coordinator.new.enable": "there is one coordinator",
    "host.name": "use listeners",
    "inter.broker.protocol.version": "every version is offered at once; remove it",
    "log.message.downconversion.enable": "old formats are returned as stored; remove it",
    "log.message.format.version": "records are stored in format 2; remove it",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "node.id": "use broker.id",
    "offsets.commit.required.acks": "commits always wait for the whole ISR; remove it",
    "port": "use listeners",
    "replica.lag.max.messages": "use replica.lag.time.max.ms",
    "zookeeper.sync.time.ms": "remove it",
}

_KRAFT: Final = "the metadata store takes the place of KRaft"
_JAVA: Final = "Java classes cannot be loaded"
_LOGIN: Final = "tokens are read when a connection is made"
_TIERED: Final = "tiered storage is not offered"
_ASSIGNMENT: Final = "assignments are made when they are needed"
_METRICS: Final = "metrics are read from metrics.port"

NOT_OFFERED: Final[Mapping[str, str]] = {
    "alter.config.policy.class.name": _JAVA,
    "alter.config.policy.kraft.compatibility.enable": _JAVA,
    "auto.include.jmx.reporter": _METRICS,
    "broker.heartbeat.interval.ms": _KRAFT,
    "broker.session.timeout.ms": _KRAFT,
    "client.quota.callback.class": _JAVA,
    "controller.performance.": _KRAFT,
    "controller.quorum.": _KRAFT,
    "cordoned.log.dirs": "log directories cannot be cordoned",
    "create.topic.policy.class.name": _JAVA,
    "early.start.listeners": _KRAFT,
    "eligible.leader.replicas.enable": _KRAFT,
    "follower.fetch.last.tiered.offset.enable": _TIERED,
    "group.consumer.assignment.interval.ms": _ASSIGNMENT,
    "group.consumer.max.assignment.interval.ms": _ASSIGNMENT,
    "group.consumer.min.assignment.interval.ms": _ASSIGNMENT,
    "group.coordinator.background.threads": "coordinators need no threads of their own",
    "group.coordinator.cached.buffer.max.bytes": "coordinators keep no such buffer",
    "group.share.": "share groups are not offered",
    "group.streams.": "streams groups are not offered",
    "initial.broker.registration.timeout.ms": _KRAFT,
    "internal.metadata.": _KRAFT,
    "kafka.metrics.": _METRICS,
    "listener.name.": "of a single listener only connection limits, TLS and SASL are offered",
    "log.dir.failure.timeout.ms": _KRAFT,
    "log.local.retention.": _TIERED,
    "metadata.log.": _KRAFT,
    "metadata.max.": _KRAFT,
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "principal.builder.class": _JAVA,
    "process.roles": _KRAFT,
    "remote.": _TIERED,
    "sasl.client.callback.handler.class": _JAVA,
    "sasl.login.class": _JAVA,
    "sasl.login.connect.timeout.ms": _LOGIN,
    "sasl.login.read.timeout.ms": _LOGIN,
    "sasl.login.refresh.": _LOGIN,
    "sasl.login.retry.": _LOGIN,
    "sasl.oauthbearer.assertion.": _LOGIN,
    "sasl.oauthbearer.header.urlencode": _LOGIN,
    "sasl.oauthbearer.jwks.endpoint.retry.": _LOGIN,
    "sasl.oauthbearer.jwt.": _JAVA,
    "sasl.mechanism.controller.protocol": _KRAFT,
    "security.providers": _JAVA,
    "server.max.startup.time.ms": _KRAFT,
    "share.": "share groups are not offered",
    "ssl.allow.": "certificates are replaced whatever they name",
    "ssl.engine.factory.class": _JAVA,
    "telemetry.": _METRICS,
    "unclean.leader.election.interval.ms": _KRAFT,
    "unstable.": "every offered version is stable",
    "zookeeper.metadata.migration.": _KRAFT,
}
"""A name that ends in a dot stands for all names with that prefix."""


class Translated(NamedTuple):
    texts: dict[str, str]
    warnings: list[str]


def translate(texts: Mapping[str, str], settings: Iterable[str]) -> Translated:
    """Old names translated to their new ones, and a warning for each key that has no effect."""
    translated = dict(texts)
    names = set(settings)
    unknown = sorted(key for key in translated if key not in names)
    warnings = [_warning(key, names) for key in unknown]
    _translate_old_names(translated)
    for key in unknown:
        del translated[key]
    return Translated(translated, warnings)


def not_offered(key: str) -> str | None:
    """Why a setting of Kafka has no effect here; None for a name that Kafka does not have."""
    if key in REPLACED:
        return f"obsolete: {REPLACED[key]}"
    for name, reason in NOT_OFFERED.items():
        if key == name or (name.endswith(".") and key.startswith(name)):
            return reason
    return None


def _warning(key: str, names: set[str]) -> str:
    if key in REPLACED:
        return f"{key} is obsolete: {REPLACED[key]}"
    reason = not_offered(key)
    if reason is not None:
        return f"{key} has no effect: {reason}"
    nearest = get_close_matches(key, sorted(names), n=1, cutoff=0.75)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"{key} has no effect: unknown setting{hint}"


def _translate_old_names(texts: dict[str, str]) -> None:
    """Set the new names from the old ones, unless the new ones are set."""
    if "node.id" in texts:
        texts.setdefault("broker.id", texts["node.id"])
    if "port" in texts or "host.name" in texts:
        host, port = texts.get("host.name", ""), texts.get("port", "9092")
        texts.setdefault("listeners", f"PLAINTEXT://{host}:{port}")
    if "advertised.host.name" in texts:
        port = texts.get("advertised.port", texts.get("port", "9092"))
        address = f"PLAINTEXT://{texts['advertised.host.name']}:{port}"
        texts.setdefault("advertised.listeners", address)
    controllers = {name.strip() for name in texts.get("controller.listener.names", "").split(",")}
    for key in ("listeners", "advertised.listeners"):
        if key in texts:
            items = (item.strip() for item in texts[key].split(","))
            texts[key] = ",".join(i for i in items if i.partition("://")[0] not in controllers)
