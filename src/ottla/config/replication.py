"""Settings of replication and elections."""

from typing import Annotated, Final

from ottla.config.settings import (
    LONG_MAX,
    AtLeast,
    Doc,
    Dynamic,
    Long,
    NoEffect,
    OneOf,
    Settings,
)

_SYSTEM_BUFFERS: Final = NoEffect("the system chooses the size")
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ReplicationSettings(Settings):
    default_replication_factor: Annotated[
        int, AtLeast(1), Doc("Copies of a topic created without saying how many.")
    ] = 1
    min_insync_replicas: Annotated[
        int, AtLeast(1), Dynamic("cluster"), Doc("Fewest in-sync copies that acks=all accepts.")
    ] = 1
    unclean_leader_election_enable: Annotated[
        bool, Dynamic("cluster"), Doc("Let a replica outside the ISR lead, losing records.")
    ] = False
    auto_leader_rebalance_enable: Annotated[
        bool, Doc("Move leadership back to preferred replicas.")
    ] = True
    leader_imbalance_per_broker_percentage: Annotated[
        int, AtLeast(0), Doc("Percentage of leaders off their preferred replica that triggers it.")
    ] = 10
    leader_imbalance_check_interval_seconds: Annotated[
        Long, AtLeast(1), Doc("How often leaders are checked for that.")
    ] = 300

    replica_selector_class: Annotated[
        str | None,
        OneOf((RACK_AWARE_SELECTOR,)),
        Doc("With it consumers read from a replica in the rack of their `client.rack`."),
    ] = None
    num_replica_fetchers: Annotated[
        int, AtLeast(1), Dynamic("cluster"), Doc("Connections to each leader broker.")
    ] = 1
    replica_lag_time_max_ms: Annotated[
        Long, AtLeast(1), Doc("A follower behind for longer than this leaves the ISR.")
    ] = 30_000
    replica_fetch_wait_max_ms: Annotated[
        int, AtLeast(1), Doc("Longest a follower's fetch waits at the leader.")
    ] = 500
    replica_fetch_min_bytes: Annotated[
        int, AtLeast(1), Doc("Fewest bytes a follower's fetch waits for.")
    ] = 1
    replica_fetch_max_bytes: Annotated[
        int, AtLeast(0), Doc("Most bytes of one partition in a follower's fetch.")
    ] = 1_048_576
    replica_fetch_response_max_bytes: Annotated[
        int, AtLeast(0), Doc("Most bytes of a whole follower's fetch.")
    ] = 10_485_760
    replica_fetch_backoff_ms: Annotated[
        int, AtLeast(0), Doc("Wait after a partition could not be fetched.")
    ] = 1_000
    replica_socket_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Longest a follower waits for a fetch reply.")
    ] = 30_000
    replica_socket_receive_buffer_bytes: Annotated[
        int, AtLeast(1, (-1,)), Doc("SO_RCVBUF of a follower's connections."), _SYSTEM_BUFFERS
    ] = 65_536
    replica_high_watermark_checkpoint_interval_ms: Annotated[
        Long, AtLeast(1), Doc("How often high watermarks are written.")
    ] = 5_000
    leader_replication_throttled_rate: Annotated[
        Long,
        AtLeast(0),
        Dynamic("cluster"),
        Doc("Bytes a second sent to throttled replicas that are not in sync."),
    ] = LONG_MAX
    follower_replication_throttled_rate: Annotated[
        Long,
        AtLeast(0),
        Dynamic("cluster"),
        Doc("Bytes a second fetched for throttled replicas that are not in sync."),
    ] = LONG_MAX
    replica_alter_log_dirs_io_max_bytes_per_second: Annotated[
        Long, AtLeast(0), Dynamic("cluster"), Doc("Bytes a second moved between log directories.")
    ] = LONG_MAX
    replication_quota_window_num: Annotated[
        int, AtLeast(1), Doc("Samples of replication throttles.")
    ] = 11
    replication_quota_window_size_seconds: Annotated[
        int, AtLeast(1), Doc("Length of a sample of replication throttles.")
    ] = 1
    alter_log_dirs_replication_quota_window_num: Annotated[
        int, AtLeast(1), Doc("Samples of the throttle of moves between log directories.")
    ] = 11
    alter_log_dirs_replication_quota_window_size_seconds: Annotated[
        int, AtLeast(1), Doc("Length of a sample of the throttle of these moves.")
    ] = 1
    num_replica_alter_log_dirs_threads: Annotated[
        int | None,
        AtLeast(1),
        Doc("Replicas moved between directories at the same time."),
        NoEffect("copies take turns on the event loop"),
    ] = None

    controller_socket_timeout_ms: Annotated[
        int, AtLeast(1), Doc("Longest the controller waits for a broker's reply.")
    ] = 30_000
    controlled_shutdown_enable: Annotated[bool, Doc("Hand over leadership before stopping.")] = True
    controlled_shutdown_max_retries: Annotated[
        int, AtLeast(0), Doc("Tries before stopping anyway.")
    ] = 3
    controlled_shutdown_retry_backoff_ms: Annotated[
        Long, AtLeast(0), Doc("Wait between those tries.")
    ] = 5_000
