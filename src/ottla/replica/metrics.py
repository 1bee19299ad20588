"""Gauges of the replica layer, computed when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized

from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import Log
from ottla.model.metrics import Gauge, Labels, Registry, Series
from ottla.replica.hosted_partitions import HostedPartitions, PartitionPurgatory
from ottla.replica.services import ReplicaServices


def register_gauges(registry: Registry, services: ReplicaServices) -> None:
    hosted, sessions = services.hosted, services.sessions
    gauges: dict[str, tuple[str, Gauge]] = {
        "replicamanager_partition_count": (
            "Partitions hosted by this broker.",
            lambda: len(hosted),
        ),
        "replicamanager_leader_count": (
            "Partitions led by this broker.",
            lambda: _led_count(hosted),
        ),
        "replicamanager_under_replicated_partitions": (
            "Partitions led here with fewer in-sync replicas than assigned replicas.",
            lambda: _under_replicated(hosted),
        ),
        "replicamanager_under_min_isr_partition_count": (
            "Partitions led here with fewer in-sync replicas than acks=all needs.",
            lambda: _under_min_isr(hosted),
        ),
        "replicamanager_at_min_isr_partition_count": (
            "Partitions led here with just as many in-sync replicas as acks=all needs.",
            lambda: _at_min_isr(hosted),
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
    _register_directory_gauge(registry, services.directories)
    waiting = hosted.waiting
    _register_purgatory_gauges(registry, waiting.produce, extra=waiting.commits)
    _register_purgatory_gauges(registry, waiting.fetch)
    _register_purgatory_gauges(registry, waiting.delete_records)
    _register_log_gauges(registry, hosted)


def _register_directory_gauge(registry: Registry, directories: LogDirectories) -> None:
    registry.gauge(
        "kafka_log_logmanager_offline_log_directory_count",
        "Log directories that have failed.",
        lambda: len(directories.all) - len(directories.online),
    )


def _register_purgatory_gauges(
    registry: Registry, purgatory: PartitionPurgatory, extra: Sized = ()
) -> None:
    """`extra`: waits for the same condition that are not in the purgatory, one key each."""
    group, name = "kafka_server_delayedoperationpurgatory", purgatory.name
    registry.gauge(
        f"{group}_purgatory_size",
        "Entries in watch lists.",
        lambda: purgatory.watched + len(extra),
        delayed_operation=name,
    )
    registry.gauge(
        f"{group}_num_delayed_operations",
        "Delayed operations.",
        lambda: purgatory.delayed + len(extra),
        delayed_operation=name,
    )


def _register_log_gauges(registry: Registry, hosted: HostedPartitions) -> None:
    """Gauges of each log, listed when they are read, so that ten thousand cost nothing before."""
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
        for partition in hosted:
            topic, index = partition.key
            yield (("partition", str(index)), ("topic", topic)), read(partition.log)

    return rows


def _led_count(hosted: HostedPartitions) -> int:
    return sum(partition.leadership is not None for partition in hosted)


def _under_replicated(hosted: HostedPartitions) -> int:
    led = (partition.leadership for partition in hosted if partition.leadership is not None)
    return sum(len(leadership.isr) < len(leadership.replicas) for leadership in led)


def _at_min_isr(hosted: HostedPartitions) -> int:
    return sum(
        partition.leadership is not None
        and len(partition.leadership.isr) == partition.min_isr(partition.leadership)
        for partition in hosted
    )


def _under_min_isr(hosted: HostedPartitions) -> int:
    return sum(
        partition.leadership is not None
        and len(partition.leadership.isr) < partition.min_isr(partition.leadership)
        for partition in hosted
    )
