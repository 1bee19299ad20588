"""What the controller makes of this broker's partitions, and what it is refused."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from ottla.log.directories.checkpoint_file import RECOVERY_POINTS
from ottla.log.recovery.log_loader import create
from ottla.metadata.image import Image, PartitionMetadata, TopicMetadata
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import (
    NO_BROKER,
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicPartition,
)
from ottla.protocol.records.header import CorruptBatch
from ottla.replica.leader import LeaderAssignment
from ottla.replica.transitions import TURN, EpochFence, PartitionStop, PartitionTransition
from tests.fakes.data_side import (
    ME,
    OTHER,
    TOPIC_ID,
    TP,
    DataSide,
    data_side,
    values_of,
)
from tests.fakes.forgetting_disk import ForgettingDisk


def state(
    epoch: int = 0,
    *,
    leader: BrokerId = ME,
    replicas: tuple[BrokerId, ...] = (ME, OTHER),
    topic_id: UUID = TOPIC_ID,
    is_new: bool = False,
) -> PartitionTransition:
    assigned = LeaderAssignment(leader, LeaderEpoch(epoch), replicas, replicas, version=0)
    return PartitionTransition(TP, topic_id, assigned, is_new)


async def become(side: DataSide, wanted: PartitionTransition) -> ErrorCode:
    return (await side.services.transitions.apply_leader_and_isr([wanted]))[wanted.key]


async def stop(side: DataSide, epoch: int, *, delete: bool = False) -> ErrorCode:
    codes = await side.services.transitions.stop_replicas(
        [PartitionStop(TP, LeaderEpoch(epoch), delete)]
    )
    return codes[TP]


@pytest.mark.spec("REP-56", "REP-64")
async def test_an_older_controller_is_refused_and_a_newer_one_remembered() -> None:
    async with data_side() as side:
        transitions = side.services.transitions
        for epoch in (3, 3, 5):
            transitions.check(EpochFence(ControllerEpoch(epoch), BrokerEpoch(-1)))
        with pytest.raises(KafkaError) as refusal:
            transitions.check(EpochFence(ControllerEpoch(4), BrokerEpoch(-1)))
        assert refusal.value.code is ErrorCode.stale_controller_epoch


async def test_what_was_meant_for_an_earlier_life_of_this_broker_is_refused() -> None:
    async with data_side() as side:
        transitions = side.services.transitions
        transitions.broker_epoch = BrokerEpoch(70)
        for known in (-1, 70, 71):
            transitions.check(EpochFence(ControllerEpoch(1), BrokerEpoch(known)))
        with pytest.raises(KafkaError) as refusal:
            transitions.check(EpochFence(ControllerEpoch(9), BrokerEpoch(69)))
        assert refusal.value.code is ErrorCode.stale_broker_epoch
        assert transitions.controller_epoch == 1, "and its controller epoch says nothing"
        with pytest.raises(KafkaError) as refusal:
            transitions.check(EpochFence(ControllerEpoch(0), BrokerEpoch(69)))
        assert refusal.value.code is ErrorCode.stale_broker_epoch, "said first, as Kafka does"


@pytest.mark.spec("REP-64", "REP-65", "REP-67", "REP-68")
async def test_a_partition_is_made_led_and_followed_as_told() -> None:
    async with data_side() as side:
        assert await become(side, state(0)) is ErrorCode.none
        partition = side.hosted.get(TP)
        assert partition.require_leadership().replicas == (ME, OTHER)
        assert partition.log.topic_id == TOPIC_ID
        assert await become(side, state(1, leader=OTHER)) is ErrorCode.none
        assert partition.leadership is None
        assert (partition.leader_id, partition.leader_epoch) == (OTHER, 1)


@pytest.mark.spec("REP-64")
@pytest.mark.parametrize("epoch", [4, 3])
async def test_an_equal_or_smaller_leader_epoch_changes_nothing(epoch: int) -> None:
    async with data_side() as side:
        await become(side, state(4, is_new=True))
        before = side.hosted.get(TP).leadership
        stale = await become(side, state(epoch, leader=OTHER))
        assert stale is ErrorCode.stale_controller_epoch
        assert side.hosted.get(TP).leadership is before


@pytest.mark.spec("REP-64")
async def test_a_partition_that_is_not_ours_is_refused_and_leaves_no_trace() -> None:
    async with data_side() as side:
        refused = await become(side, state(leader=OTHER, replicas=(OTHER,)))
        assert refused is ErrorCode.unknown_topic_or_partition
        assert side.hosted.find(TP) is None
        assert not side.disk.exists(Path("/data/t-0"))


@pytest.mark.parametrize("leader", [ME, OTHER])
async def test_a_replica_listed_in_sync_without_a_log_is_refused(leader: BrokerId) -> None:
    async with data_side() as side:
        assert await become(side, state(1, leader=leader)) is ErrorCode.kafka_storage_error
        assert side.hosted.find(TP) is None
        assert not side.disk.exists(Path("/data/t-0"))


@pytest.mark.spec("REP-41")
async def test_the_last_in_sync_replica_may_begin_empty_if_it_never_had_a_log() -> None:
    """It never fetched, so the high watermark never moved."""
    async with data_side() as side:
        assigned = LeaderAssignment(ME, LeaderEpoch(3), (ME,), (ME, OTHER), version=3)
        wanted = PartitionTransition(TP, TOPIC_ID, assigned)
        assert await become(side, wanted) is ErrorCode.none
        assert side.hosted.get(TP).require_leadership().epoch == 3


async def test_the_last_in_sync_replica_whose_log_was_removed_is_refused_at_every_start() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await side.lead()
        await side.append(b"a")
        side.directories.close()
    disk.remove_tree(Path("/data/t-0"))
    assigned = LeaderAssignment(ME, LeaderEpoch(3), (ME,), (ME, OTHER), version=3)
    for _ in range(3):
        async with data_side(disk=disk) as side:
            wanted = PartitionTransition(TP, TOPIC_ID, assigned)
            assert await become(side, wanted) is ErrorCode.kafka_storage_error
            side.directories.close()


@pytest.mark.parametrize("leader", [ME, OTHER])
@pytest.mark.parametrize("seed", range(5))
async def test_a_new_log_survives_a_power_cut_once_it_is_led_or_followed(
    leader: BrokerId, seed: int
) -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await become(side, state(leader=leader, is_new=True))
        disk.crash(seed)
    async with data_side(disk=disk) as side:
        assert side.directories.get(TP) is not None


async def test_a_new_log_whose_directory_cannot_be_synced_is_not_served() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        side.disk.sync_error = OSError(errno.EIO, "broken")
        assert await become(side, state(is_new=True)) is ErrorCode.kafka_storage_error
        side.disk.sync_error = None
        assert side.hosted.find(TP) is None


async def test_a_replica_outside_the_in_sync_set_starts_with_an_empty_log() -> None:
    async with data_side() as side:
        assigned = LeaderAssignment(OTHER, LeaderEpoch(7), (OTHER,), (ME, OTHER), version=9)
        wanted = PartitionTransition(TP, TOPIC_ID, assigned)
        assert await become(side, wanted) is ErrorCode.none
        assert side.hosted.get(TP).log.end_offset == 0


async def test_where_missing_directories_are_accepted_so_are_missing_logs() -> None:
    async with data_side({"log.dirs.accept.missing": "true"}) as side:
        assert await become(side, state(1)) is ErrorCode.none


@pytest.mark.spec("REP-35")
async def test_a_newer_in_sync_set_of_the_same_epoch_is_taken_over() -> None:
    async with data_side() as side:
        await become(side, state(4, is_new=True))
        leadership = side.hosted.get(TP).require_leadership()
        leadership.proposed = frozenset({ME})
        assigned = LeaderAssignment(ME, LeaderEpoch(4), (ME,), (ME, OTHER), version=3)
        wanted = PartitionTransition(TP, TOPIC_ID, assigned)
        assert await become(side, wanted) is ErrorCode.none
        assert (leadership.isr, leadership.version) == (frozenset({ME}), 3)
        assert leadership.proposed is None, "no longer in doubt"
        assert side.hosted.get(TP).leadership is leadership


async def test_a_later_topic_of_the_same_name_is_not_taken_for_this_one() -> None:
    async with data_side() as side:
        await become(side, state(0))
        other = await become(side, state(1, topic_id=UUID(int=8)))
        assert other is ErrorCode.inconsistent_topic_id
        assert await become(side, state(1, topic_id=NO_TOPIC_ID)) is ErrorCode.none


async def test_the_log_of_an_earlier_topic_of_that_name_is_set_aside_after_a_restart() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await side.lead()
        await side.start_append(b"of the earlier topic")
        disk.kill()
    async with data_side(disk=disk) as side:
        later = state(0, leader=OTHER, topic_id=UUID(int=8), is_new=True)
        assert await become(side, later) is ErrorCode.none
        partition = side.hosted.get(TP)
        assert (partition.log.topic_id, partition.log.end_offset) == (UUID(int=8), 0)
        [stray] = [name for name in disk.list(Path("/data")) if name.endswith("-stray")]
        assert stray.startswith("t-0.")


async def test_a_log_from_before_topics_had_ids_takes_the_one_it_is_told() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        place = side.directories.place
        create(TP, Path("/data/t-0"), side.config.topic("t"), place, NO_TOPIC_ID)
        disk.kill()
    async with data_side(disk=disk) as side:
        await become(side, state(0))
        assert side.hosted.get(TP).log.topic_id == TOPIC_ID
        assert await become(side, state(1, topic_id=UUID(int=8))) is (
            ErrorCode.inconsistent_topic_id
        )


@pytest.mark.spec("REP-55", "REP-64", "REP-65")
async def test_what_was_in_a_failed_directory_stays_offline() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        await become(side, state(0))
        directory = side.hosted.get(TP).log.dir.parent
        side.directories.failed(directory, OSError(errno.EIO, "broken"))
        assert await become(side, state(1)) is ErrorCode.kafka_storage_error
        assert await stop(side, 1, delete=True) is ErrorCode.kafka_storage_error
        assert side.hosted.offline == {TP}


# Corrupt logs


def following(epoch: int, *isr: BrokerId, leader: BrokerId = OTHER) -> PartitionTransition:
    assigned = LeaderAssignment(leader, LeaderEpoch(epoch), isr, (ME, OTHER), version=epoch)
    return PartitionTransition(TP, TOPIC_ID, assigned)


def strays(side: DataSide) -> list[str]:
    names = [name for dir in side.directories.all for name in side.disk.list(dir.path)]
    return [name for name in names if name.endswith("-stray")]


@pytest.mark.spec("REP-55")
async def test_a_corrupt_log_is_replaced_once_another_leads_and_nobody_counts_on_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        partition = await side.lead(replicas=(ME, OTHER))
        await side.start_append(b"a", acks=1)
        side.hosted.fail(partition, CorruptBatch("found by a follower"))
        [other] = {dir.path for dir in side.directories.all} - {partition.log.dir.parent}
        side.directories.failed(other, OSError(errno.EIO, "broken"))
        for refused in (following(1, ME, OTHER), following(2, OTHER, leader=NO_BROKER)):
            assert await become(side, refused) is ErrorCode.kafka_storage_error
        assert strays(side) == []
        assert await become(side, following(3, OTHER)) is ErrorCode.none
        refilled = side.hosted.get(TP)
        assert (refilled.leader_id, refilled.log.end_offset) == (OTHER, 0)
        assert refilled.log.dir == partition.log.dir, "in its place"
        assert side.hosted.offline == frozenset()
        [stray] = strays(side)
        assert f"{stray}; copying the partition from its leader" in caplog.text


async def test_the_only_good_replica_never_replaces_its_corrupt_log() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=(ME, OTHER))
        side.hosted.fail(partition, CorruptBatch("found by a follower"))
        assert await become(side, following(1, ME, leader=ME)) is ErrorCode.kafka_storage_error
        assert await become(side, following(2, ME)) is ErrorCode.kafka_storage_error
        assert strays(side) == []


async def test_a_topic_with_a_corrupt_log_can_be_deleted() -> None:
    async with data_side() as side:
        partition = await side.lead()
        side.hosted.fail(partition, CorruptBatch("found by a follower"))
        assert await stop(side, 0) is ErrorCode.kafka_storage_error
        assert await stop(side, -2, delete=True) is ErrorCode.none
        assert not side.disk.exists(partition.log.dir)
        for removal in side.directories.removals.due():
            removal.run()
        assert not [name for name in side.disk.list(Path("/data")) if name.startswith("t-0")]
        assert (await side.lead()).log.end_offset == 0


async def test_an_empty_log_never_stands_in_for_one_that_an_offline_directory_may_hold() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        side.directories.failed(Path("/b"), OSError(errno.EIO, "broken"))
        assert await become(side, state(3)) is ErrorCode.kafka_storage_error
        assert side.hosted.offline == {TP}
        fresh = state(0, is_new=True)._replace(key=TopicPartition("new", 0))
        assert await become(side, fresh) is ErrorCode.none


async def test_with_every_directory_gone_nothing_is_hosted() -> None:
    async with data_side() as side:
        side.directories.on_failure = None
        side.directories.failed(Path("/data"), OSError(errno.EIO, "broken"))
        assert await become(side, state(is_new=True)) is ErrorCode.kafka_storage_error


async def test_a_disk_without_room_for_a_partition_fails_its_directory_alone() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        side.disk.capacity_bytes = side.disk.written_bytes
        assert await become(side, state(is_new=True)) is ErrorCode.kafka_storage_error
        side.disk.capacity_bytes = None
        assert [str(one.path) for one in side.directories.online] == ["/b"]


async def test_what_a_restart_finds_on_the_disk_is_what_is_led() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await side.lead()
        await side.append(b"a")
        disk.kill()
    async with data_side(disk=disk) as side:
        assert side.hosted.find(TP) is None, "nobody has said yet what it is for"
        await side.lead(epoch=1, is_new=False)
        assert values_of(await side.read()) == [b"a"]


@pytest.mark.spec("REP-65")
async def test_a_stopped_replica_keeps_its_files_unless_told_otherwise() -> None:
    async with data_side() as side:
        await become(side, state(2, is_new=True))
        waiting = side.start_append(b"a", acks=-1)
        assert await stop(side, 2) is ErrorCode.none
        assert waiting.result().error_code is ErrorCode.not_leader_or_follower
        assert side.hosted.find(TP) is None
        assert side.disk.exists(Path("/data/t-0"))
        await become(side, state(3))
        assert side.hosted.get(TP).log.end_offset == 1
        assert await stop(side, 3, delete=True) is ErrorCode.none
        assert not side.disk.exists(Path("/data/t-0"))
        assert await stop(side, 3, delete=True) is ErrorCode.none, "once more is no harm"


async def test_a_replica_reassigned_while_its_broker_was_down_is_deleted_and_no_other() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await side.lead()
        await side.append(b"a")
        disk.kill()
    for replicas, topic_id, stays in (
        ((ME, OTHER), TOPIC_ID, True),
        ((OTHER,), UUID(int=99), True),  # another topic of that name
        ((OTHER,), TOPIC_ID, False),
    ):
        async with data_side(disk=disk) as side:
            metadata = PartitionMetadata(OTHER, LeaderEpoch(3), replicas, replicas, (), 0)
            image = Image(topics={TP.topic: TopicMetadata(topic_id, {TP.partition: metadata})})
            await side.services.transitions.delete_reassigned(partial(image.is_elsewhere, ME))
            assert disk.exists(Path("/data/t-0")) is stays
            await side.services.transitions.delete_reassigned(partial(Image().is_elsewhere, ME))
            assert disk.exists(Path("/data/t-0")) is stays, "nothing is known of the topic"
            disk.kill()


@pytest.mark.parametrize("has_records", [False, True])
async def test_a_log_without_topic_id_is_deleted_as_reassigned_only_if_it_is_empty(
    has_records: bool,
) -> None:
    """A power cut while a log is created takes its topic id."""
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await side.lead()
        if has_records:
            await side.append(b"a")
        disk.kill()
    disk.remove(Path("/data/t-0/partition.metadata"))
    metadata = PartitionMetadata(OTHER, LeaderEpoch(3), (OTHER,), (OTHER,), (), 0)
    image = Image(topics={TP.topic: TopicMetadata(TOPIC_ID, {TP.partition: metadata})})
    async with data_side(disk=disk) as side:
        await side.services.transitions.delete_reassigned(partial(image.is_elsewhere, ME))
        assert disk.exists(Path("/data/t-0")) is has_records


async def test_a_stop_from_before_the_present_leader_is_refused() -> None:
    async with data_side() as side:
        await become(side, state(5, is_new=True))
        assert await stop(side, 4, delete=True) is ErrorCode.fenced_leader_epoch
        assert side.hosted.get(TP).require_leadership().epoch == 5
        assert await stop(side, -2, delete=True) is ErrorCode.none, "a topic that goes"


async def test_a_deletion_that_the_disk_refuses_fails_the_directory() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        await become(side, state(is_new=True))
        side.disk.sync_error = OSError(errno.EIO, "broken")
        assert await stop(side, 0, delete=True) is ErrorCode.kafka_storage_error
        side.disk.sync_error = None
        assert side.hosted.offline == {TP}


async def test_many_partitions_at_once_leave_others_their_turn() -> None:
    async with data_side() as side:
        created: list[int] = []
        seen: list[int] = []

        async def other() -> None:
            while len(side.hosted) < 3 * TURN:
                created.append(len(side.directories.logs))
                seen.append(len(side.hosted))
                await asyncio.sleep(0)

        side.run(other())
        fresh = state(is_new=True)
        keys = [TopicPartition("many", index) for index in range(3 * TURN)]
        await side.services.transitions.apply_leader_and_isr(
            [fresh._replace(key=key) for key in keys]
        )
        assert {TURN, 2 * TURN} <= {*created}
        assert {TURN, 2 * TURN} <= {*seen}


async def test_many_deletions_sync_their_directory_once() -> None:
    async with data_side() as side:
        fresh = state(is_new=True)
        keys = [TopicPartition("many", index) for index in range(3 * TURN)]
        await side.services.transitions.apply_leader_and_isr(
            [fresh._replace(key=key) for key in keys]
        )
        side.disk.syncs = 0
        stops = [PartitionStop(key, LeaderEpoch(-2), delete=True) for key in keys]
        codes = await side.services.transitions.stop_replicas(stops)
        assert set(codes.values()) == {ErrorCode.none}
        assert side.disk.syncs == 1


@pytest.mark.spec("CTL-76")
async def test_what_a_broker_that_shuts_down_leads_no_more_it_does_not_follow_either() -> None:
    async with data_side() as side:
        await become(side, state(0, is_new=True))
        side.services.transitions.begin_shutdown()
        taken = LeaderAssignment(OTHER, LeaderEpoch(1), (OTHER,), (ME, OTHER), version=1)
        assert await become(side, PartitionTransition(TP, TOPIC_ID, taken)) is ErrorCode.none
        assert list(side.data.fetchers) == []
        waited_for = LeaderAssignment(OTHER, LeaderEpoch(2), (OTHER, ME), (ME, OTHER), version=2)
        assert await become(side, PartitionTransition(TP, TOPIC_ID, waited_for)) is ErrorCode.none
        assert len(list(side.data.fetchers)) == 1


async def test_checkpoints_remember_a_lost_log_that_must_not_be_made_again() -> None:
    async with data_side() as side:
        [directory] = side.directories.all
        directory.checkpoint(RECOVERY_POINTS, {TP: 7}).run()
        directory.lost_logs[TP] = 7
        assert await become(side, state(1)) is ErrorCode.kafka_storage_error
        assert directory.offsets(RECOVERY_POINTS) == {TP: 7}
