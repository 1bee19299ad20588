"""Numbers of the replica layer, worked out when somebody asks."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ottla.model.ids import TopicPartition
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side

SECOND = TopicPartition("t", 1)
TWO = (ME, OTHER)


def replica_manager(side: DataSide, name: str) -> float:
    return side.count(f"kafka_server_replicamanager_{name}")


@pytest.mark.spec("MON-18", "MON-19", "REP-09")
async def test_partitions_are_counted_by_how_they_stand() -> None:
    async with data_side({"min.insync.replicas": "2"}, dirs=("/a", "/b")) as side:
        await side.lead(replicas=TWO)
        await side.lead(SECOND, replicas=TWO, isr=(ME,))
        await side.follow(TopicPartition("t", 2), epoch=0)
        assert replica_manager(side, "partition_count") == 3
        assert replica_manager(side, "leader_count") == 2
        assert replica_manager(side, "under_replicated_partitions") == 1
        assert replica_manager(side, "under_min_isr_partition_count") == 1
        assert replica_manager(side, "offline_replica_count") == 0
        side.directories.failed(Path("/b"), OSError(errno.EIO, "broken"))
        assert replica_manager(side, "offline_replica_count") == 1
        assert replica_manager(side, "under_min_isr_partition_count") == 0
        assert side.count("kafka_log_logmanager_offline_log_directory_count") == 1


@pytest.mark.spec("MON-21")
async def test_each_purgatory_tells_who_waits_in_it() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        side.start_append(b"a", acks=-1)
        side.hosted.waiting.commits.wait(partition, 1, 1_000, lambda _: None)
        side.start_fetch(0)
        side.start_fetch(0)
        group = "kafka_server_delayedoperationpurgatory"
        waiting = {
            name: (
                side.count(f"{group}_num_delayed_operations", delayed_operation=name),
                side.count(f"{group}_purgatory_size", delayed_operation=name),
            )
            for name in ("Produce", "Fetch", "DeleteRecords")
        }
        assert waiting == {"Produce": (2, 2), "Fetch": (2, 2), "DeleteRecords": (0, 0)}


@pytest.mark.spec("MON-25", "MON-26")
async def test_each_log_tells_its_size_and_where_it_begins_and_ends() -> None:
    async with data_side() as side:
        partition = await side.lead()
        await side.append(b"a")
        partition.log.roll(side.clock.wall_ms())
        await side.append(b"b")
        partition.log.raise_start_offset(1)
        labels = (("partition", "0"), ("topic", "t"))
        found = {
            family.name.removeprefix("kafka_log_log_"): dict(family.series())
            for family in side.registry.families()
            if family.series is not None and family.name.startswith("kafka_log_log_")
        }
        assert found == {
            "size": {labels: partition.log.size},
            "num_log_segments": {labels: 2},
            "log_start_offset": {labels: 1},
            "log_end_offset": {labels: 2},
        }
        side.hosted.remove(TP)
        series = [family.series for family in side.registry.families() if family.series]
        assert [list(one()) for one in series] == [[]] * 5


@pytest.mark.spec("WIRE-26")
async def test_fetch_sessions_are_counted() -> None:
    async with data_side() as side:
        group = "kafka_server_fetchsessioncache"
        assert side.count(f"{group}_num_incremental_fetch_sessions") == 0
        assert side.count(f"{group}_num_incremental_fetch_partitions_cached") == 0
        side.services.sessions.evictions = 3
        assert side.count(f"{group}_incremental_fetch_session_evictions_total") == 3
