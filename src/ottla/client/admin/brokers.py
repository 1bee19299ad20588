"""The cluster: its brokers, its controller, its finalized features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin import api_keys
from ottla.client.admin.session import Session
from ottla.client.broker_connection import Versions
from ottla.client.cluster import Target


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker and where clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The live brokers, sorted by id; `controller` is None if there is none."""

    id: str
    controller: int | None
    brokers: tuple[BrokerInfo, ...]


class Feature(NamedTuple):
    """A feature's levels: the broker's supported range, and the cluster's finalized level."""

    supported: tuple[int, int]
    finalized: int | None


async def describe_cluster(session: Session) -> ClusterInfo:
    """The cluster's id, its controller and its brokers."""
    fields = {
        "include_cluster_authorized_operations": False,
        "endpoint_type": 1,
        "include_fenced_brokers": False,
    }
    reply = await session.once(Target.ANY, api_keys.DESCRIBE_CLUSTER, fields)
    brokers = sorted(
        (
            BrokerInfo(row.broker_id, row.host, row.port, row.rack, row.is_fenced)
            for row in reply.brokers
        ),
        key=lambda broker: broker.id,
    )
    controller = reply.controller_id
    return ClusterInfo(reply.cluster_id, controller if controller >= 0 else None, tuple(brokers))


async def describe_features(session: Session) -> Mapping[str, Feature]:
    """The features of the cluster by name."""
    versions: Versions = await session.cluster.versions(Target.ANY)
    return {
        name: Feature(levels, versions.finalized.get(name))
        for name, levels in versions.supported.items()
    }


async def describe_api_versions(
    session: Session, broker: int | None = None
) -> Mapping[int, tuple[int, int]]:
    """The version range of every API that a broker supports, by API key, inclusive."""
    if broker is not None:
        await session.own_broker.of(broker)
    target = Target.ANY if broker is None else broker
    return (await session.cluster.versions(target)).ranges
