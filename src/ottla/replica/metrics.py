"""Numbers of the replica layer that are worked out when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized

from ottla.log.log import Log
from ottla.model.metrics import Gauge, Labels, Registry, Series
from ottla.replica.hosted_partitions import HostedPartitions, Parked
from ottla.replica.services import ReplicaServices


def offer_gauges(registry: Registry, services: ReplicaServices) -> None:
    hosted, sessions = services.hosted, services.sessions
    gauges: dict[str, tuple[str, Gauge]] = {
        "replicamanager_partition_count": (
            "Partitions hosted by this broker.",
            lambda: len(hosted),
        ),
        "replicamanager_leader_count": ("Partitions led by this broker.", lambda: _led(hosted)),
        "replicamanager_under_replicated_partitions": (
            "Partitions led here with fewer in-sync replicas than assigned replicas.",
            lambda: _under_replicated(hosted),
        ),
        "replicamanager_under_min_isr_partition_count": (
            "Partitions led here with fewer in-sync replicas than acks=all needs.",
            lambda: _under_min_isr(hosted),
        ),
        "replicamanager_offline_replica_count": (
            "Replicas in failed log directories, or found corrupt.",
            lambda: len(hosted.offline),
        ),
        "fetchsessioncache_num_incremental_fetch_sessions": (
            "Fetch sessions.",
            lambda: len(sessions),
        ),
        "fetchsessioncache_num_incremental_fetch_partitions_cached": (
            "Partitions in fetch sessions.",
            lambda: sessions.partitions,
        ),
    }
    for name, (doc, read) in gauges.items():
        registry.gauge(f"kafka_server_{name}", doc, read)
    registry.tally(
        "kafka_server_fetchsessioncache_incremental_fetch_session_evictions_total",
        "Fetch sessions evicted to make room for others.",
        lambda: sessions.evictions,
    )
    directories = services.directories
    registry.gauge(
        "kafka_log_logmanager_offline_log_directory_count",
        "Log directories that have failed.",
        lambda: len(directories.all) - len(directories.online),
    )
    waiting = hosted.waiting
    _offer_purgatory_gauges(registry, waiting.produce, beside=waiting.commits)
    _offer_purgatory_gauges(registry, waiting.fetch)
    _offer_purgatory_gauges(registry, waiting.delete_records)
    _offer_log_gauges(registry, hosted)


def _offer_purgatory_gauges(registry: Registry, parked: Parked, beside: Sized = ()) -> None:
    """`beside`: who waits for the same without being parked; each under one key."""
    group, name = "kafka_server_delayedoperationpurgatory", parked.name
    registry.gauge(
        f"{group}_purgatory_size",
        "Entries in watch lists.",
        lambda: parked.watched + len(beside),
        delayed_operation=name,
    )
    registry.gauge(
        f"{group}_num_delayed_operations",
        "Delayed operations.",
        lambda: parked.delayed + len(beside),
        delayed_operation=name,
    )


def _offer_log_gauges(registry: Registry, hosted: HostedPartitions) -> None:
    """Of each log; they are listed when asked for, so that ten thousand cost nothing till then."""
    gauges: dict[str, tuple[str, Callable[[Log], int]]] = {
        "size": ("Bytes of a log.", lambda log: log.size),
        "num_log_segments": ("Segments of a log.", lambda log: len(log.segments)),
        "log_start_offset": ("First offset of a log.", lambda log: log.start_offset),
        "log_end_offset": ("Offset of a log's next record.", lambda log: log.end_offset),
    }
    for name, (doc, read) in gauges.items():
        registry.series(f"kafka_log_log_{name}", doc, _by_partition(hosted, read))


def _by_partition(hosted: HostedPartitions, read: Callable[[Log], int]) -> Series:
    def rows() -> Iterator[tuple[Labels, float]]:
        for one in hosted:
            partition, topic = str(one.key.partition), one.key.topic
            yield (("partition", partition), ("topic", topic)), read(one.log)

    return rows


def _led(hosted: HostedPartitions) -> int:
    return sum(partition.leadership is not None for partition in hosted)


def _under_replicated(hosted: HostedPartitions) -> int:
    led = (partition.leadership for partition in hosted)
    return sum(one is not None and len(one.isr) < len(one.replicas) for one in led)


def _under_min_isr(hosted: HostedPartitions) -> int:
    return sum(
        partition.leadership is not None
        and len(partition.leadership.isr) < partition.min_isr(partition.leadership)
        for partition in hosted
    )
