"""The fields of the messages between controller and brokers, with the versions that have them.

Only a table: `interbroker` makes classes of it. The layout is that of Kafka 3.x, the last with
these messages.
"""

from __future__ import annotations

from typing import Final, NamedTuple

LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
UPDATE_METADATA: Final = 6
CONTROLLED_SHUTDOWN: Final = 7

LATEST: Final = 99
NO_DEFAULT: Final = ...


class Declared(NamedTuple):
    """One field, and the versions that have it: `since` to `until`, both included."""

    name: str
    wire_type: str
    since: int = 0
    until: int = LATEST
    default: object = NO_DEFAULT
    fields: tuple[Declared, ...] = ()
    nullable: bool = False
    tag: int | None = None


class Message(NamedTuple):
    """One message in all its versions."""

    name: str
    flexible_since: int
    fields: tuple[Declared, ...]


F = Declared

_LEADER_AND_ISR_PARTITION: Final = (
    F("topic_name", "string", until=1),
    F("partition_index", "int32"),
    F("controller_epoch", "int32"),
    F("leader", "int32"),
    F("leader_epoch", "int32"),
    F("isr", "int32[]"),
    F("partition_epoch", "int32"),
    F("replicas", "int32[]"),
    F("adding_replicas", "int32[]", since=3, default=()),
    F("removing_replicas", "int32[]", since=3, default=()),
    F("is_new", "bool", since=1, default=False),
    F("leader_recovery_state", "int8", since=6, default=0),
)
_LEADER_AND_ISR_ERROR: Final = (
    F("topic_name", "string", until=4),
    F("partition_index", "int32"),
    F("error_code", "error_code"),
)
_UPDATE_METADATA_PARTITION: Final = (
    F("topic_name", "string", until=4),
    F("partition_index", "int32"),
    F("controller_epoch", "int32"),
    F("leader", "int32"),
    F("leader_epoch", "int32"),
    F("isr", "int32[]"),
    F("zk_version", "int32"),
    F("replicas", "int32[]"),
    F("offline_replicas", "int32[]", since=4, default=()),
)
_ENDPOINT: Final = (
    F("port", "int32"),
    F("host", "string"),
    F("listener", "string", since=3),
    F("security_protocol", "int16"),
)
_BROKER: Final = (
    F("id", "int32"),
    F("v0_host", "string", until=0),
    F("v0_port", "int32", until=0),
    F("endpoints", "UpdateMetadataEndpoint[]", since=1, fields=_ENDPOINT),
    F("rack", "string", since=2, nullable=True, default=None),
)

REQUESTS: Final = {
    LEADER_AND_ISR: Message(
        "LeaderAndIsrRequest",
        4,
        (
            F("controller_id", "int32"),
            F("is_kraft_controller", "bool", since=7, default=False),
            F("controller_epoch", "int32"),
            F("broker_epoch", "int64", since=2, default=-1),
            F("type", "int8", since=5, default=0),
            F(
                "ungrouped_partition_states",
                "LeaderAndIsrPartitionState[]",
                until=1,
                fields=_LEADER_AND_ISR_PARTITION,
            ),
            F(
                "topic_states",
                "LeaderAndIsrTopicState[]",
                since=2,
                fields=(
                    F("topic_name", "string"),
                    F("topic_id", "uuid", since=5, nullable=True),
                    F(
                        "partition_states",
                        "LeaderAndIsrPartitionState[]",
                        fields=_LEADER_AND_ISR_PARTITION,
                    ),
                ),
            ),
            F(
                "live_leaders",
                "LeaderAndIsrLiveLeader[]",
                fields=(F("broker_id", "int32"), F("host_name", "string"), F("port", "int32")),
            ),
        ),
    ),
    STOP_REPLICA: Message(
        "StopReplicaRequest",
        2,
        (
            F("controller_id", "int32"),
            F("is_kraft_controller", "bool", since=4, default=False),
            F("controller_epoch", "int32"),
            F("broker_epoch", "int64", since=1, default=-1),
            F("delete_partitions", "bool", until=2),
            F(
                "ungrouped_partitions",
                "StopReplicaPartitionV0[]",
                until=0,
                fields=(F("topic_name", "string"), F("partition_index", "int32")),
            ),
            F(
                "topics",
                "StopReplicaTopicV1[]",
                since=1,
                until=2,
                fields=(F("name", "string"), F("partition_indexes", "int32[]")),
            ),
            F(
                "topic_states",
                "StopReplicaTopicState[]",
                since=3,
                fields=(
                    F("topic_name", "string"),
                    F(
                        "partition_states",
                        "StopReplicaPartitionState[]",
                        fields=(
                            F("partition_index", "int32"),
                            F("leader_epoch", "int32", default=-1),
                            F("delete_partition", "bool"),
                        ),
                    ),
                ),
            ),
        ),
    ),
    UPDATE_METADATA: Message(
        "UpdateMetadataRequest",
        6,
        (
            F("controller_id", "int32"),
            F("is_kraft_controller", "bool", since=8, default=False),
            F("type", "int8", since=8, default=0, tag=0),
            # Ours; other readers skip it. In a full update: how many more requests belong to it.
            F("requests_left", "int32", since=8, default=0, tag=10_000),
            F("controller_epoch", "int32"),
            F("broker_epoch", "int64", since=5, default=-1),
            F(
                "ungrouped_partition_states",
                "UpdateMetadataPartitionState[]",
                until=4,
                fields=_UPDATE_METADATA_PARTITION,
            ),
            F(
                "topic_states",
                "UpdateMetadataTopicState[]",
                since=5,
                fields=(
                    F("topic_name", "string"),
                    F("topic_id", "uuid", since=7, nullable=True),
                    F(
                        "partition_states",
                        "UpdateMetadataPartitionState[]",
                        fields=_UPDATE_METADATA_PARTITION,
                    ),
                ),
            ),
            F("live_brokers", "UpdateMetadataBroker[]", fields=_BROKER),
        ),
    ),
    CONTROLLED_SHUTDOWN: Message(
        "ControlledShutdownRequest",
        3,
        (F("broker_id", "int32"), F("broker_epoch", "int64", since=2, default=-1)),
    ),
}

RESPONSES: Final = {
    LEADER_AND_ISR: Message(
        "LeaderAndIsrResponse",
        4,
        (
            F("error_code", "error_code"),
            F(
                "partition_errors",
                "LeaderAndIsrPartitionError[]",
                until=4,
                fields=_LEADER_AND_ISR_ERROR,
            ),
            F(
                "topics",
                "LeaderAndIsrTopicError[]",
                since=5,
                fields=(
                    F("topic_id", "uuid", nullable=True),
                    F(
                        "partition_errors",
                        "LeaderAndIsrPartitionError[]",
                        fields=_LEADER_AND_ISR_ERROR,
                    ),
                ),
            ),
        ),
    ),
    STOP_REPLICA: Message(
        "StopReplicaResponse",
        2,
        (
            F("error_code", "error_code"),
            F(
                "partition_errors",
                "StopReplicaPartitionError[]",
                fields=(
                    F("topic_name", "string"),
                    F("partition_index", "int32"),
                    F("error_code", "error_code"),
                ),
            ),
        ),
    ),
    UPDATE_METADATA: Message("UpdateMetadataResponse", 6, (F("error_code", "error_code"),)),
    CONTROLLED_SHUTDOWN: Message(
        "ControlledShutdownResponse",
        3,
        (
            F("error_code", "error_code"),
            F(
                "remaining_partitions",
                "RemainingPartition[]",
                fields=(F("topic_name", "string"), F("partition_index", "int32")),
            ),
        ),
    ),
}

VERSIONS: Final[dict[int, range]] = {
    LEADER_AND_ISR: range(8),
    STOP_REPLICA: range(5),
    UPDATE_METADATA: range(9),
    CONTROLLED_SHUTDOWN: range(4),
}
