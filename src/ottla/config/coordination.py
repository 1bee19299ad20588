"""Settings of group and transaction coordinators."""

from typing import Annotated, Final

from ottla.config.settings import (
    INT_MAX,
    AtLeast,
    Between,
    Doc,
    Dynamic,
    Long,
    NoEffect,
    OneOf,
    Settings,
    Short,
    Words,
)

ASSIGNOR_CLASSES: Final = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name
    for name in ("uniform", "range")
}
"""As Apache Kafka 3.9 names them."""
_CLIENT_RETRIES: Final = NoEffect("the producer is told to retry")


class CoordinationSettings(Settings):
    group_min_session_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Smallest session timeout a classic group member may ask for.")
    ] = 6_000
    group_max_session_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Largest session timeout a classic group member may ask for.")
    ] = 1_800_000
    group_initial_rebalance_delay_ms: Annotated[
        int, AtLeast(0), Doc("Wait for more members before an empty group first rebalances.")
    ] = 3_000
    group_max_size: Annotated[int, AtLeast(1), Doc("Most members of a classic group.")] = INT_MAX
    group_coordinator_rebalance_protocols: Annotated[
        Words,
        OneOf(("classic", "consumer", "streams", "share")),
        Doc("Group protocols offered."),
    ] = ("classic", "consumer")
    group_coordinator_threads: Annotated[
        int,
        AtLeast(1),
        Doc("Threads of the group coordinator."),
        NoEffect("coordinators run on the event loop"),
    ] = 4
    group_coordinator_append_linger_ms: Annotated[
        int,
        AtLeast(-1),
        Doc("Wait to gather a coordinator's records into one batch; -1 adapts."),
        NoEffect("records of one event-loop iteration are written together"),
    ] = -1

    group_consumer_session_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Session timeout of the consumer protocol.")
    ] = 45_000
    group_consumer_min_session_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Smallest session timeout a group may set.")
    ] = 45_000
    group_consumer_max_session_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Largest session timeout a group may set.")
    ] = 60_000
    group_consumer_heartbeat_interval_ms: Annotated[
        int, AtLeast(1), Doc("Heartbeat interval of the consumer protocol.")
    ] = 5_000
    group_consumer_min_heartbeat_interval_ms: Annotated[
        int, AtLeast(1), Doc("Smallest heartbeat interval a group may set.")
    ] = 5_000
    group_consumer_max_heartbeat_interval_ms: Annotated[
        int, AtLeast(1), Doc("Largest heartbeat interval a group may set.")
    ] = 15_000
    group_consumer_max_size: Annotated[
        int, AtLeast(1), Doc("Most members of a consumer-protocol group.")
    ] = INT_MAX
    group_consumer_assignors: Annotated[
        Words,
        OneOf(("uniform", "range", *ASSIGNOR_CLASSES)),
        Doc("Server-side assignors; the first is the default."),
    ] = ("uniform", "range")
    group_consumer_migration_policy: Annotated[
        str,
        OneOf(("bidirectional", "upgrade", "downgrade", "disabled")),
        Doc("Whether a group may move between the classic and the consumer protocol."),
    ] = "bidirectional"
    group_consumer_regex_refresh_interval_ms: Annotated[
        int, AtLeast(10_000), Doc("How often a group's topic pattern is resolved again.")
    ] = 600_000

    offset_metadata_max_bytes: Annotated[
        int, AtLeast(0), Doc("Longest text stored with a committed offset.")
    ] = 4_096
    offsets_commit_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Longest wait for a commit to be replicated.")
    ] = 5_000
    offsets_load_buffer_size: Annotated[
        int, AtLeast(1), Doc("Bytes read at a time when a coordinator loads.")
    ] = 5_242_880
    offsets_retention_minutes: Annotated[
        int, AtLeast(1), Doc("How long offsets of an empty group are kept.")
    ] = 10_080
    offsets_retention_check_interval_ms: Annotated[
        Long, AtLeast(1), Doc("How often expired offsets are removed.")
    ] = 600_000
    offsets_topic_num_partitions: Annotated[
        int, AtLeast(1), Doc("Partitions of __consumer_offsets.")
    ] = 50
    offsets_topic_replication_factor: Annotated[
        Short, AtLeast(1), Doc("Copies of __consumer_offsets; at most the live brokers.")
    ] = 3
    offsets_topic_segment_bytes: Annotated[
        int, AtLeast(1), Doc("Segment size of __consumer_offsets.")
    ] = 104_857_600
    offsets_topic_compression_codec: Annotated[
        int, Between(0, 4), Doc("Codec of its records: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.")
    ] = 0

    transaction_state_log_num_partitions: Annotated[
        int, AtLeast(1), Doc("Partitions of __transaction_state.")
    ] = 50
    transaction_state_log_replication_factor: Annotated[
        Short, AtLeast(1), Doc("Copies of __transaction_state; at most the live brokers.")
    ] = 3
    transaction_state_log_min_isr: Annotated[
        int, AtLeast(1), Doc("In-sync copies its writes need; at most its copies.")
    ] = 2
    transaction_state_log_segment_bytes: Annotated[
        int, AtLeast(1), Doc("Segment size of __transaction_state.")
    ] = 104_857_600
    transaction_state_log_load_buffer_size: Annotated[
        int, AtLeast(1), Doc("Bytes read at a time when a coordinator loads.")
    ] = 5_242_880
    transactional_id_expiration_ms: Annotated[
        int, AtLeast(1), Doc("Idle time after which a transactional id expires.")
    ] = 604_800_000
    transaction_max_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Largest transaction timeout a producer may ask for.")
    ] = 900_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Annotated[
        int, AtLeast(1), Doc("How often timed-out transactions are aborted.")
    ] = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: Annotated[
        int, AtLeast(1), Doc("How often expired transactional ids are removed.")
    ] = 3_600_000
    transaction_partition_verification_enable: Annotated[
        bool,
        Dynamic("cluster"),
        Doc("Ask the coordinator whether a transaction is open before its first append."),
    ] = True
    transaction_two_phase_commit_enable: Annotated[
        bool, Doc("Let producers prepare a transaction and complete it later.")
    ] = True
    add_partitions_to_txn_retry_backoff_ms: Annotated[
        int,
        AtLeast(1),
        Doc("First pause before verifying a transaction again."),
        _CLIENT_RETRIES,
    ] = 20
    add_partitions_to_txn_retry_backoff_max_ms: Annotated[
        int, AtLeast(0), Doc("Longest pause before verifying a transaction again."), _CLIENT_RETRIES
    ] = 100

    @property
    def assignor_names(self) -> tuple[str, ...]:
        names = (ASSIGNOR_CLASSES.get(name, name) for name in self.group_consumer_assignors)
        return tuple(dict.fromkeys(names))
