"""One hosted partition: roles, refusals, and how far its high watermark may go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.flush import begin_flush
from ottla.log.validate import Origin, analyse
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.replica.partition import HostedPartition
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side

TWO = (ME, OTHER)


def append(side: DataSide, partition: HostedPartition, *values: bytes, acks: int = -1) -> None:
    config = partition.log.config
    batch = analyse(side.batch(*values), config, now_ms=side.clock.wall_ms(), origin=Origin.CLIENT)
    partition.append(batch, acks, Origin.CLIENT, WallMs(0))
    partition.advance()


@pytest.mark.spec("REP-37", "REP-67")
async def test_a_new_leader_epoch_begins_at_the_log_end() -> None:
    async with data_side() as side:
        partition = await side.lead()
        append(side, partition, b"a", b"b")
        await side.lead(epoch=5)
        append(side, partition, b"c")
        log = partition.log
        assert log.epochs.end_offset(0, log.end_offset) == (0, 2)
        assert log.epochs.end_offset(5, log.end_offset) == (5, 3)
        assert (partition.leader_epoch, partition.leader_id) == (5, ME)


@pytest.mark.spec("REP-38", "LOG-16")
async def test_epochs_are_in_the_partitions_directory_once_records_of_them_are_on_the_disk() -> (
    None
):
    async with data_side({"flush.before.ack": "all"}) as side:
        partition = await side.lead(epoch=2)
        file = partition.log.dir / "leader-epoch-checkpoint"
        await side.append(b"a", b"b", acks=-1)
        assert side.disk.read(file) == b"0\n1\n2 0\n"
        await side.lead(epoch=5)
        await side.append(b"c", acks=-1)
        side.disk.crash(0)
        assert side.disk.read(file) == b"0\n2\n2 0\n5 2\n"


@pytest.mark.spec("REP-67", "REP-13")
async def test_a_new_leader_knows_nothing_of_where_its_followers_are() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        append(side, partition, b"a")
        side.start_fetch(1, replica_id=OTHER)
        assert partition.log.high_watermark == 1
        await side.lead(epoch=1, replicas=TWO)
        assert partition.require_leadership().followers[OTHER].end == -1
        append(side, partition, b"b")
        assert partition.log.high_watermark == 1


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, None),
        (3, None),
        (2, ErrorCode.fenced_leader_epoch),
        (4, ErrorCode.unknown_leader_epoch),
    ],
)
async def test_a_client_with_another_leader_epoch_is_told_which_side_is_behind(
    epoch: int, code: ErrorCode | None
) -> None:
    async with data_side() as side:
        partition = await side.lead(epoch=3)
        if code is None:
            assert partition.require_leadership(epoch).epoch == 3
        else:
            with pytest.raises(KafkaError) as refusal:
                partition.require_leadership(epoch)
            assert refusal.value.code is code


@pytest.mark.spec("REP-07")
async def test_a_follower_takes_no_appends() -> None:
    async with data_side() as side:
        partition = await side.follow(epoch=0)
        with pytest.raises(KafkaError) as refusal:
            append(side, partition, b"a")
        assert refusal.value.code is ErrorCode.not_leader_or_follower
        assert not partition.advance()


async def test_a_lost_partition_says_that_its_storage_failed() -> None:
    async with data_side() as side:
        partition = await side.lead()
        side.hosted.mark_offline([TP])
        with pytest.raises(KafkaError) as refusal:
            partition.require_leadership()
        assert refusal.value.code is ErrorCode.kafka_storage_error
        assert partition.acknowledged(partition.leader_epoch, 0) is refusal.value.code


@pytest.mark.spec("REP-03", "REP-20")
async def test_the_watermark_stays_while_fewer_are_in_sync_than_the_topic_demands() -> None:
    async with data_side({"min.insync.replicas": "2"}) as side:
        partition = await side.lead(replicas=TWO, isr=(ME,))
        append(side, partition, b"a", acks=1)
        assert partition.log.high_watermark == 0
        partition.set_isr(frozenset(TWO), version=1)
        partition.record_follower_fetch(OTHER, 1, 0)
        assert partition.advance()
        assert partition.log.high_watermark == 1


async def test_leading_alone_with_data_nobody_else_has_waits_for_the_disk_first() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead(replicas=TWO)
        append(side, partition, b"a", acks=1)
        side.pool.held = True
        await side.lead(epoch=1, replicas=TWO, isr=(ME,))
        await side.settle()
        assert partition.waits_for_flush
        assert partition.log.high_watermark == 0
        side.pool.run_all()
        await side.settle()
        assert partition.log.recovery_point == partition.log.high_watermark == 1


async def test_what_lesser_acks_committed_is_acknowledged_to_acks_all_only_from_the_disk() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead()
        batch = side.batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0)
        side.pool.held = True
        assert side.start_append(records=batch, acks=1).done()
        assert partition.log.high_watermark == 1
        waiting = side.start_append(records=batch, acks=-1)
        await side.settle()
        assert not waiting.done()
        side.pool.run_all()
        assert (await waiting).base_offset == 0


async def test_a_leader_that_is_left_alone_waits_for_the_disk_with_what_nobody_else_has() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead(replicas=TWO)
        side.pool.held = True
        append(side, partition, b"a", acks=1)
        assert not partition.waits_for_flush
        partition.set_isr(frozenset({ME}), 1)
        assert partition.waits_for_flush
        assert not partition.advance()
        side.pool.held = False


async def test_a_repeat_of_what_is_on_the_disk_is_acknowledged_at_once() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead()
        batch = side.batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0)
        assert (await side.start_append(records=batch, acks=-1)).base_offset == 0
        assert partition.log.recovery_point == 1
        side.pool.held = True
        assert side.start_append(records=batch, acks=-1).done()
        side.pool.held = False


async def test_what_is_on_the_disk_does_not_wait_for_what_came_after_it() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead()
        side.pool.held = True
        append(side, partition, b"a")
        flush = begin_flush(partition.log)
        append(side, partition, b"b")
        flush.run()
        partition.log.flush_done(flush)
        partition.flushed()
        partition.advance()
        assert partition.acknowledged(partition.leader_epoch, 1) is ErrorCode.none
        assert partition.acknowledged(partition.leader_epoch, 2) is None
        side.pool.held = False


async def test_a_flush_of_bytes_that_were_cut_off_meanwhile_counts_for_nothing() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead()
        side.pool.held = True
        side.start_append(b"a", b"b", acks=-1)
        await side.settle()
        await side.follow(epoch=1)
        partition.log.truncate_to(0)
        await side.lead(epoch=2)
        waiting = side.start_append(b"c", b"d", acks=-1)
        side.pool.run_all()  # of what is no longer there
        await side.settle()
        assert not waiting.done()
        side.pool.run_all()
        assert (await waiting).error_code is ErrorCode.none


@given(
    steps=st.lists(
        st.sampled_from(["all", "one", "repeat", "begin", "finish"]), min_size=1, max_size=30
    )
)
async def test_nothing_waits_for_ever_and_nothing_held_is_committed_before_the_disk_has_it(
    steps: list[str],
) -> None:
    """Appends and flushes in any order: acks=all is answered exactly when the disk has it."""
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead()
        side.pool.held = True
        waiting = []
        first = side.batch(b"f", producer_id=9, producer_epoch=0, base_sequence=0)
        for step in steps:
            if step == "all":
                waiting.append(side.start_append(b"x", acks=-1, timeout_ms=10**9))
            elif step == "one":
                side.start_append(b"y", acks=1)
            elif step == "repeat":
                again = side.start_append(records=first, acks=-1, timeout_ms=10**9)
                waiting.append(again)
            elif step == "begin":
                await side.settle()
            else:
                side.pool.run_all()
                await side.settle()
            for one in waiting:
                if one.done():
                    assert one.result().base_offset < partition.log.recovery_point
        side.pool.held = False
        side.pool.run_all()
        await side.settle()
        assert all(one.done() for one in waiting)
        assert partition.log.high_watermark == partition.log.end_offset
