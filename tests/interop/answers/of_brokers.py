"""What a controller and its brokers say to each other with ZooKeeper: APIs that 4.x removed.

Played to an Apache Kafka 3.9. Only what leaves both brokers as they are: stale epochs, and no
partitions or such as are refused. The last scenario has the broker shut down, as far as its
controller knows.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from tests.interop.answers.scenario import (
    ALL,
    Ask,
    Scenario,
    Steps,
    ask,
    scenario,
    since,
    topic,
)

APIS: Final = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")
TO_BROKERS: Final = APIS[:3]
USER: Final = "alice"
PASSWORD: Final = "alice-secret"
BROKER: Final = 1
NOBODY: Final = 77
# Both controllers are the first of their cluster.
EPOCH: Final = 1
STALE_EPOCH: Final = 0
STALE_BROKER_EPOCH: Final = 0  # a ZooKeeper's first transaction makes no broker
LATER_BROKER_EPOCH: Final = 1 << 60
OTHER_ID: Final = UUID(int=39)


def told(
    api: str, epoch: int = EPOCH, broker_epoch: int = -1, topics: tuple[dict[str, Any], ...] = ()
) -> Ask:
    """A controller's request in every version that both sides offer."""
    fields: dict[str, Any] = {
        "controller_id": BROKER,
        "controller_epoch": epoch,
        "broker_epoch": broker_epoch,
        "topic_states": list(topics),
    }
    if api == "UpdateMetadata":  # all brokers there are: the others would be forgotten
        fields["live_brokers"] = [{"id": BROKER, "endpoints": [_ENDPOINT]}]
    return ask(api, ALL, **fields)


def state(name: str, topic_id: str | UUID, epoch: int, replica: int) -> dict[str, Any]:
    """A topic of a LeaderAndIsr, with its partition 0."""
    partition = {
        "partition_index": 0,
        "controller_epoch": EPOCH,
        "leader": replica,
        "leader_epoch": epoch,
        "isr": [replica],
        "replicas": [replica],
    }
    return {"topic_name": name, "topic_id": topic_id, "partition_states": [partition]}


def stopped(name: str, partition: int, leader_epoch: int, *, delete: bool) -> dict[str, Any]:
    """A topic of a StopReplica, with one partition."""
    one = {
        "partition_index": partition,
        "leader_epoch": leader_epoch,
        "delete_partition": delete,
    }
    return {"topic_name": name, "partition_states": [one]}


def logged_in() -> Steps:
    """The steps that make this connection that of an ordinary user."""
    token = f"\0{USER}\0{PASSWORD}".encode()
    return (
        ask("SaslHandshake", 1, mechanism="PLAIN", setup=True),
        ask("SaslAuthenticate", 2, auth_bytes=token, setup=True),
    )


_ENDPOINT: Final = {
    "host": "127.0.0.1",
    "port": "$port",
    "listener": "PLAINTEXT",
    "security_protocol": 0,
}
_PORT: Final = ask("Metadata", 12, topics=[], setup=True, save={"port": "brokers.0.port"})
_ID: Final = ask(
    "Metadata", 12, topics=[{"name": "$t"}], setup=True, save={"id": "topics.0.topic_id"}
)

OF_A_CLIENT: Final[tuple[Scenario, ...]] = (
    scenario(
        "a client speaks as a controller",
        logged_in(),
        *(ask(api, ALL, controller_id=BROKER, controller_epoch=EPOCH) for api in TO_BROKERS),
        *(ask(api, ALL, controller_epoch=STALE_EPOCH) for api in TO_BROKERS),
        ask("StopReplica", ALL, topic_states=[stopped("$t", 0, -1, delete=True)]),
        ask("LeaderAndIsr", ALL, topic_states=[state("$t", OTHER_ID, 1, BROKER)]),
    ),
    scenario(
        "a client speaks as a broker that shuts down",
        logged_in(),
        ask("ControlledShutdown", ALL, broker_id=BROKER),
        ask("ControlledShutdown", ALL, broker_id=NOBODY),
    ),
)
OF_A_BROKER: Final[tuple[Scenario, ...]] = (
    scenario(
        "a controller has nothing to tell",
        _PORT,
        *(told(api) for api in TO_BROKERS),
    ),
    scenario(
        "an earlier controller",
        _PORT,
        topic("$t"),
        *(told(api, STALE_EPOCH) for api in TO_BROKERS),
        told("StopReplica", STALE_EPOCH, topics=(stopped("$t", 0, -1, delete=True),)),
        told("LeaderAndIsr", STALE_EPOCH, topics=(state("$t", OTHER_ID, 1, BROKER),)),
    ),
    scenario(
        "a controller means an earlier life of the broker",
        _PORT,
        topic("$t"),
        *(told(api, broker_epoch=STALE_BROKER_EPOCH) for api in TO_BROKERS),
        told(
            "StopReplica",
            broker_epoch=STALE_BROKER_EPOCH,
            topics=(stopped("$t", 0, -1, delete=True),),
        ),
        told(
            "LeaderAndIsr",
            broker_epoch=STALE_BROKER_EPOCH,
            topics=(state("$t", OTHER_ID, 1, BROKER),),
        ),
    ),
    scenario(
        "an earlier controller means an earlier life of the broker",
        _PORT,
        *(told(api, STALE_EPOCH, STALE_BROKER_EPOCH) for api in TO_BROKERS),
    ),
    scenario(
        "a controller means a later life of the broker",
        _PORT,
        *(told(api, broker_epoch=LATER_BROKER_EPOCH) for api in TO_BROKERS),
    ),
    scenario(
        "replicas stopped that are not there",
        topic("$t"),
        *(
            told("StopReplica", topics=(stopped(name, partition, epoch, delete=delete),))
            for name, partition in (("$t", 9), ("$nothing", 0))
            for epoch in (-2, -1, 5)
            for delete in (False, True)
        ),
        told(
            "StopReplica",
            topics=(stopped("$t", 8, 0, delete=True), stopped("$nothing", 7, 0, delete=False)),
        ),
    ),
    scenario(
        "leaders that are known, or are no matter of this broker",
        topic("$t"),
        _ID,
        told("LeaderAndIsr", topics=(state("$t", "$id", 0, BROKER),)),
        told("LeaderAndIsr", topics=(state("$t", "$id", -1, BROKER),)),
        told("LeaderAndIsr", topics=(state("$t", OTHER_ID, 5, BROKER),)),
        told("LeaderAndIsr", topics=(state("$t", OTHER_ID, 0, BROKER),)),
        told("LeaderAndIsr", topics=(state("$t", "$id", 5, NOBODY),)),
    ),
    scenario(
        "brokers shut down that are not there",
        ask("ControlledShutdown", ALL, broker_id=NOBODY),
        ask("ControlledShutdown", since(2), broker_id=NOBODY, broker_epoch=STALE_BROKER_EPOCH),
        ask("ControlledShutdown", since(2), broker_id=BROKER, broker_epoch=STALE_BROKER_EPOCH),
        ask("ControlledShutdown", ALL, broker_id=-1),
    ),
    scenario(
        "a broker shuts down",
        topic("$t"),
        ask("ControlledShutdown", ALL, broker_id=BROKER),
    ),
)
