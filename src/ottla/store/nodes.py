"""The nodes of the tree: Kafka's JSON, encoded and decoded.

Owns: the fields and versions of every node. Never accesses a store. Each class has `encode` and
`decode` side by side; unknown fields are ignored, a node that cannot be parsed raises `BadNode`.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeAlias
from uuid import UUID

from ottla.model.clock import WallMs
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)

JsonObject: TypeAlias = dict[str, Any]
"""A node's data; each class of node checks what it reads of it."""


class BadNode(ValueError):
    """The data of a node cannot be parsed."""


class ControllerNode(NamedTuple):
    """/controller, ephemeral: who is the controller."""

    broker: BrokerId
    timestamp_ms: WallMs

    def encode(self) -> bytes:
        return dump({"version": 1, "brokerid": self.broker, "timestamp": str(self.timestamp_ms)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = load(data, "brokerid", "timestamp")
        return cls(BrokerId(fields["brokerid"]), WallMs(int(fields["timestamp"])))


class ControllerEpochNode(NamedTuple):
    """/controller_epoch: plain digits; the version of the node fences old controllers."""

    epoch: ControllerEpoch

    def encode(self) -> bytes:
        return str(self.epoch).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        try:
            return cls(ControllerEpoch(int(data)))
        except ValueError as error:
            raise BadNode(f"invalid controller epoch: {data!r}") from error


class EndpointNode(NamedTuple):
    """One advertised listener of a broker."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @classmethod
    def parse(cls, text: str, protocols: Mapping[str, str]) -> Self:
        name, separator, address = text.partition("://")
        host, colon, port = address.rpartition(":")
        if not (separator and colon and port.isdigit()):
            raise BadNode(f"invalid endpoint: {text!r}, expected NAME://HOST:PORT")
        return cls(name, host.strip("[]"), int(port), protocols.get(name, name))


class BrokerNode(NamedTuple):
    """/brokers/ids/<id>, ephemeral: a live broker. Its creation number is the broker's epoch."""

    endpoints: tuple[EndpointNode, ...]
    timestamp_ms: WallMs
    rack: str | None = None
    log_dirs: LogDirsNode | None = None
    """Not Kafka's: only if log directories were lost, those that the broker has now."""

    def encode(self) -> bytes:
        plain = next((e for e in self.endpoints if e.protocol == "PLAINTEXT"), None)
        fields: dict[str, object] = {
            "version": 5,
            "features": {},
            "host": plain.host if plain else None,
            "port": plain.port if plain else -1,
            "jmx_port": -1,
            "timestamp": str(self.timestamp_ms),
            "endpoints": [str(endpoint) for endpoint in self.endpoints],
            "listener_security_protocol_map": {e.name: e.protocol for e in self.endpoints},
        }
        if self.rack is not None:
            fields["rack"] = self.rack
        if self.log_dirs is not None:
            fields["log_dirs"] = self.log_dirs.listed()
        return dump(fields)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = load(data, "endpoints", "timestamp")
        protocols = fields.get("listener_security_protocol_map") or {}
        endpoints = tuple(EndpointNode.parse(text, protocols) for text in fields["endpoints"])
        log_dirs = fields.get("log_dirs")
        return cls(
            endpoints,
            WallMs(int(fields["timestamp"])),
            fields.get("rack"),
            None if log_dirs is None else LogDirsNode.of(log_dirs),
        )


class TopicNode(NamedTuple):
    """/brokers/topics/<topic>: the replicas of each partition, and running reassignments."""

    topic_id: TopicId
    partitions: Mapping[int, tuple[BrokerId, ...]]
    adding: Mapping[int, tuple[BrokerId, ...]] = {}
    removing: Mapping[int, tuple[BrokerId, ...]] = {}

    def encode(self) -> bytes:
        return dump(
            {
                "version": 3,
                "topic_id": id_text(self.topic_id),
                "partitions": _keyed_assignment(self.partitions),
                "adding_replicas": _keyed_assignment(self.adding),
                "removing_replicas": _keyed_assignment(self.removing),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Versions 1 and 2, of older Kafka, have no topic id."""
        fields = load(data, "partitions")
        text = fields.get("topic_id")
        return cls(
            topic_id=id_of(text) if text else NO_TOPIC_ID,
            partitions=_assignment(fields["partitions"]),
            adding=_assignment(fields.get("adding_replicas") or {}),
            removing=_assignment(fields.get("removing_replicas") or {}),
        )


class StateNode(NamedTuple):
    """/brokers/topics/<topic>/partitions/<p>/state: leader and ISR."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    controller_epoch: ControllerEpoch

    def encode(self) -> bytes:
        return dump(
            {
                "controller_epoch": self.controller_epoch,
                "leader": self.leader,
                "version": 1,
                "leader_epoch": self.leader_epoch,
                "isr": list(self.isr),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = load(data, "leader", "leader_epoch", "isr", "controller_epoch")
        return cls(
            leader=BrokerId(fields["leader"]),
            leader_epoch=LeaderEpoch(fields["leader_epoch"]),
            isr=tuple(map(BrokerId, fields["isr"])),
            controller_epoch=ControllerEpoch(fields["controller_epoch"]),
        )


class PartitionsNode(NamedTuple):
    """/isr_change_notification/isr_change_<n> and /admin/preferred_replica_election."""

    partitions: tuple[TopicPartition, ...]

    def encode(self) -> bytes:
        listed = [{"topic": tp.topic, "partition": tp.partition} for tp in self.partitions]
        return dump({"version": 1, "partitions": listed})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(tuple(_partition(item) for item in load(data, "partitions")["partitions"]))


class ReassignmentNode(NamedTuple):
    """/admin/reassign_partitions: requested reassignments."""

    replicas: Mapping[TopicPartition, tuple[BrokerId, ...]]

    def encode(self) -> bytes:
        listed = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
            for tp, replicas in self.replicas.items()
        ]
        return dump({"version": 1, "partitions": listed})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        items = load(data, "partitions")["partitions"]
        return cls({_partition(item): tuple(map(BrokerId, item["replicas"])) for item in items})


class LogDirsNode(NamedTuple):
    """/brokers/log_dirs/<id>, not Kafka's: log directories of a broker, with their paths."""

    paths: Mapping[UUID, str]

    def encode(self) -> bytes:
        return dump({"version": 1, "directories": self.listed()})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls.of(load(data, "directories")["directories"])

    def listed(self) -> dict[str, str]:
        return dict(sorted((id_text(id_), path) for id_, path in self.paths.items()))

    @classmethod
    def of(cls, listed: Mapping[str, str]) -> Self:
        """The inverse of `listed`."""
        return cls({id_of(text): path for text, path in listed.items()})


class LogDirEventNode(NamedTuple):
    """/log_dir_event_notification/log_dir_event_<n>: a log directory of a broker failed."""

    broker: BrokerId

    def encode(self) -> bytes:
        return dump({"version": 1, "broker": self.broker, "event": 1})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(BrokerId(load(data, "broker")["broker"]))


class ConfigNode(NamedTuple):
    """/config/topics/<topic> and /config/brokers/<id>: overridden settings, as text."""

    overrides: Mapping[str, str]

    def encode(self) -> bytes:
        return dump({"version": 1, "config": dict(sorted(self.overrides.items()))})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(load(data, "config")["config"])


class ConfigChangeNode(NamedTuple):
    """/config/changes/config_change_<n>: whose settings changed, such as topics/orders."""

    entity: str

    def encode(self) -> bytes:
        return dump({"version": 2, "entity_path": self.entity})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(load(data, "entity_path")["entity_path"])


class ClusterIdNode(NamedTuple):
    """/cluster/id."""

    id: str

    def encode(self) -> bytes:
        return dump({"version": "1", "id": self.id})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(load(data, "id")["id"])


class ProducerIdBlockNode(NamedTuple):
    """/latest_producer_id_block: the last reserved block of producer ids, both ends included."""

    broker: BrokerId
    first: ProducerId
    last: ProducerId

    def encode(self) -> bytes:
        return dump(
            {
                "version": 1,
                "broker": self.broker,
                "block_start": str(self.first),
                "block_end": str(self.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = load(data, "broker", "block_start", "block_end")
        first, last = (ProducerId(int(fields[key])) for key in ("block_start", "block_end"))
        return cls(BrokerId(fields["broker"]), first, last)


def id_text(id_: UUID) -> str:
    """A UUID as Kafka writes it: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(id_.bytes).decode().rstrip("=")


def id_of(text: str) -> UUID:
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except (BadBase64, ValueError) as error:
        raise BadNode(f"invalid id: {text!r}, expected 22 characters of base64") from error


def dump(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def load(data: bytes, *required: str) -> JsonObject:
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise BadNode(f"not JSON: {data[:80]!r}") from error
    if not isinstance(fields, dict) or any(key not in fields for key in required):
        raise BadNode(f"expected an object with {', '.join(required)}: {data[:80]!r}")
    return fields


def _keyed_assignment(assignment: Mapping[int, Sequence[BrokerId]]) -> dict[str, list[BrokerId]]:
    return {str(partition): list(replicas) for partition, replicas in assignment.items()}


def _assignment(listed: Mapping[str, Sequence[int]]) -> dict[int, tuple[BrokerId, ...]]:
    pairs = ((int(key), tuple(map(BrokerId, replicas))) for key, replicas in listed.items())
    return dict(sorted(pairs))


def _partition(item: JsonObject) -> TopicPartition:
    try:
        return TopicPartition(item["topic"], item["partition"])
    except KeyError as error:
        raise BadNode(f"expected an object with topic and partition: {item}") from error
