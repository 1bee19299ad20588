"""What operators ask of three brokers, as single requests: moves, elections, deletions, lookups.

Each function asks until a controller or coordinator answers: scenarios take them away.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from confluent_kafka.admin import AdminClient

import ottla
from ottla.client.admin import Resource
from ottla.log.directories.names import DirectoryKind, parse
from ottla.model.errors import ErrorCode
from tests.cluster.load import connection
from tests.cluster.process import BrokerProcess, wait_for
from tests.cluster.three_brokers import IDS, ThreeBrokers
from tests.raw_requests import METADATA, Line

FIND_COORDINATOR: Final = 10
ALTER_REASSIGNMENTS: Final = 45
LIST_REASSIGNMENTS: Final = 46
GROUP: Final = 0
TRANSACTION: Final = 1


# Reassignments


def reassign(cluster: ThreeBrokers, topic: str, replicas: list[int] | None) -> ErrorCode:
    """Ask for other replicas of the first partition, until a controller answers; None cancels."""
    codes: list[ErrorCode] = []

    def has_answered() -> bool:
        codes.append(_reassign(cluster, topic, replicas))
        return codes[-1] is not ErrorCode.not_controller

    wait_for(has_answered, 30, "the controller")
    return codes[-1]


def _reassign(cluster: ThreeBrokers, topic: str, replicas: list[int] | None) -> ErrorCode:
    partition = {"partition_index": 0, "replicas": replicas}
    fields = {"timeout": 10_000, "topics": [{"name": topic, "partitions": [partition]}]}
    try:
        with Line(cluster.brokers[cluster.wait_for_controller()].address) as line:
            reply = line.ask(ALTER_REASSIGNMENTS, 0, **fields)
    except OSError:
        return ErrorCode.not_controller
    if reply.error_code != ErrorCode.none:
        return ErrorCode(reply.error_code)
    [[part]] = [response.partitions for response in reply.responses]
    return ErrorCode(part.error_code)


def is_reassigning(cluster: ThreeBrokers) -> bool:
    """Whether any partition is being moved."""
    with Line(cluster.brokers[cluster.wait_for_controller()].address) as line:
        reply = line.ask(LIST_REASSIGNMENTS, 0, timeout=10_000, topics=None)
    assert reply.error_code is ErrorCode.none
    return bool(reply.topics)


def replicas_of(cluster: ThreeBrokers, topic: str) -> list[int]:
    return next(
        found for name, number, found in cluster.partitions() if (name, number) == (topic, 0)
    )


def set_throttle(
    cluster: ThreeBrokers, rate: str | None, *, sides: Sequence[str] = ("leader", "follower")
) -> None:
    """How many bytes a second each broker may copy of the replicas that topics name."""
    changes = {f"{side}.replication.throttled.rate": rate for side in sides}
    with ottla.Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.incremental_alter_configs({Resource.broker(id): changes for id in IDS}).all()


# Topics


def delete_topic(cluster: ThreeBrokers, topic: str) -> None:
    admin = AdminClient(connection(cluster.bootstrap))
    [deleted] = admin.delete_topics([topic]).values()
    deleted.result(30)
    wait_for(lambda: topic not in cluster.children("/brokers/topics"), 30, "the deletion")


def topic_id(cluster: ThreeBrokers, topic: str) -> UUID:
    with Line(cluster.brokers[IDS[0]].address) as line:
        reply = line.ask(
            METADATA,
            12,
            topics=[{"topic_id": None, "name": topic}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    found: UUID = reply.topics[0].topic_id
    return found


def orphans(cluster: ThreeBrokers) -> list[str]:
    """Directories of replicas that no broker should have."""
    expected = {
        (id, topic, partition)
        for topic, partition, replicas in cluster.partitions()
        for id in replicas
    }
    found = []
    for id in IDS:
        for path in cluster.brokers[id].dirs[0].iterdir():
            named = parse(path.name)
            if named is None or named.kind is not DirectoryKind.CURRENT:
                continue
            if (id, *named.partition) not in expected:
                found.append(str(path))
    return found


def wait_until_whole(cluster: ThreeBrokers) -> None:
    cluster.wait_until_all_in_sync()
    wait_for(lambda: not orphans(cluster), 30, "orphaned replicas to be removed")


# Coordinators


def coordinator_of(cluster: ThreeBrokers, key: str, kind: int = TRANSACTION) -> int:
    """The broker that coordinates a group or a transactional id now; -1 while there is none."""
    for id in IDS:
        if cluster.brokers[id].process.poll() is not None:
            continue
        with Line(cluster.brokers[id].address) as line:
            reply = line.ask(FIND_COORDINATOR, 4, key_type=kind, coordinator_keys=[key])
        [found] = reply.coordinators
        return int(found.node_id) if found.error_code == ErrorCode.none else -1
    return -1


def wait_for_coordinator(
    cluster: ThreeBrokers, key: str, kind: int, *, other_than: Sequence[int] = ()
) -> int:
    wait_for(
        lambda: coordinator_of(cluster, key, kind) not in (-1, *other_than), 30, "a coordinator"
    )
    return coordinator_of(cluster, key, kind)


# Metrics


def metric(broker: BrokerProcess, name: str) -> float:
    """The sum of a metric over its labels; 0 where there is none."""
    address = f"http://{broker.host}:{broker.settings['metrics.port']}/metrics"
    with urllib.request.urlopen(address, timeout=10) as page:
        lines = page.read().decode().splitlines()
    return sum(
        float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name
    )
