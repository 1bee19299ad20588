"""A real fetcher copies from a real leader, through a link without sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.compaction.cleaner import CleanerMemory, LogCleaning, SegmentSwap, extent, lags
from ottla.log.compaction.plan import dirty_log_of
from ottla.log.directories.checkpoint_file import RECOVERY_POINTS, read_offsets
from ottla.log.log import Log
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.net.broker_link import RawReply
from ottla.replica.fetch.delayed_fetch import CHANGING_MS
from ottla.store import paths
from tests.fakes.data_side import ME, OTHER, TP
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.replica_pair import replica_pair

SECOND = TopicPartition("t", 1)


def compact(log: Log, now_ms: int) -> None:
    """One round of compaction over all closed segments."""
    dirty = dirty_log_of(extent(log), 0, lags(log), WallMs(now_ms))
    for step in LogCleaning(log, dirty, CleanerMemory(), WallMs(now_ms)).steps():
        if isinstance(step, SegmentSwap):
            step.perform(WallMs(now_ms))


def flip_bit(disk: ForgettingDisk, log: Log, position: int) -> None:
    path = log.segments.active.files.path()
    content = bytearray(disk.read(path))
    content[position] ^= 1
    disk.replace(path, bytes(content))
    log.release()


@pytest.mark.spec("REP-50", "REP-10", "REP-11", "REP-12", "REP-21", "CONF-10")
async def test_what_the_leader_appends_is_on_the_follower_before_it_is_acknowledged() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        produced = await pair.data(ME).start_append(b"a", b"b", acks=-1, timeout_ms=5_000)
        assert produced.error_code is ErrorCode.none
        assert pair.contents(ME) == pair.contents(OTHER) != b""
        await pair.pass_ms(1_000)
        assert pair.partition(OTHER).log.high_watermark == 2
        assert pair.partition(OTHER).log.epochs.entries == pair.partition(ME).log.epochs.entries


async def test_the_first_records_that_a_follower_copies_are_announced_once() -> None:
    """Its broker gets ready to lead: the leader may be gone the next moment."""
    async with replica_pair() as pair:
        announced: list[int] = []
        pair.data(OTHER).hosted.on_first_append = lambda: announced.append(1)
        await pair.lead(ME, epoch=0)
        await pair.pass_ms(1_000)
        assert announced == []
        for value in (b"a", b"b"):
            await pair.data(ME).start_append(value, acks=-1)
        assert announced == [1]


@pytest.mark.spec("REP-36", "REP-39", "REP-40", "REP-69")
async def test_a_deposed_leader_truncates_what_nobody_else_has_and_copies_the_rest() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.data(ME).start_append(b"both", acks=-1)
        pair.links[ME].cut = True
        lost = pair.data(ME).start_append(b"lost", acks=-1, timeout_ms=60_000)
        await pair.lead(OTHER, epoch=1, to=(OTHER,))
        await pair.data(OTHER).start_append(b"kept", b"kept too", acks=1)
        await pair.lead(OTHER, epoch=1, to=(ME,))
        assert (await lost).error_code is ErrorCode.not_leader_or_follower
        await pair.pass_ms(1_000)
        assert pair.contents(ME) == pair.contents(OTHER)
        assert pair.partition(ME).log.end_offset == 3


async def test_no_recovery_point_above_a_truncation_is_left_when_the_log_grows_again() -> None:
    """Else what was written after it and lost in a power cut would count as damage."""
    disks = (ForgettingDisk(), ForgettingDisk())
    async with replica_pair(disks=disks) as pair:
        await pair.lead(ME, epoch=0)
        deposed = pair.data(ME)
        await deposed.start_append(b"both", acks=-1)
        pair.links[ME].cut = True
        for value in (b"lost", b"lost too", b"lost as well"):
            await deposed.start_append(value, acks=1)
        flushed = pair.partition(ME).log.flush()
        for write in deposed.directories.checkpoints.recovery_points():
            write.run()
        assert (flushed, recovery_point(disks[0])) == (4, 4)
        await pair.lead(OTHER, epoch=1, to=(OTHER,))
        for value in (b"kept", b"kept too", b"kept as well", b"more"):
            await pair.data(OTHER).start_append(value, acks=1)
        await pair.lead(OTHER, epoch=1, to=(ME,))
        follower = pair.partition(ME).log
        while follower.end_offset < 5:
            await pair.pass_ms(1)
            if follower.epochs.latest == 1:
                assert recovery_point(disks[0]) == 1
        disks[0].crash(1)
        disks[1].kill()
    async with replica_pair(disks=disks) as pair:
        assert TP in pair.data(ME).directories.logs
        await pair.lead(OTHER, epoch=2)
        await pair.pass_ms(1_000)
        assert pair.contents(ME) == pair.contents(OTHER)


def recovery_point(disk: ForgettingDisk) -> int:
    """By the checkpoint, where a start after a crash begins to verify the log."""
    return read_offsets(disk, Path("/data") / RECOVERY_POINTS)[TP]


@pytest.mark.spec("REP-36", "REP-41")
async def test_a_follower_with_a_stale_high_watermark_keeps_what_is_committed() -> None:
    disks = (ForgettingDisk(), ForgettingDisk())
    async with replica_pair(disks=disks) as pair:
        await pair.lead(ME, epoch=0)
        await pair.data(ME).start_append(b"a", b"b", acks=-1)
        disks[0].kill()
        disks[1].kill()
    async with replica_pair(disks=disks) as pair:
        for broker in (ME, OTHER):
            assert pair.data(broker).directories.logs[TP].log.end_offset == 2
        await pair.lead(ME, epoch=1)
        follower = pair.partition(OTHER).log
        assert follower.high_watermark < 2
        pair.links[ME].cut = True  # the leader dies before the first fetch
        await pair.lead(OTHER, epoch=2, isr=(OTHER,))
        assert follower.end_offset == 2


@pytest.mark.spec("REP-51")
async def test_a_follower_behind_the_start_of_the_leaders_log_starts_there() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0, isr=(ME,), to=(ME,))
        leader = pair.data(ME)
        for value in (b"a", b"b", b"c"):
            await leader.append(value)
        leader_log = pair.partition(ME).log
        leader_log.truncate_fully_and_start_at(100)
        await leader.append(b"d")
        await pair.lead(ME, epoch=1, isr=(ME,))
        await pair.pass_ms(3_000)
        follower = pair.partition(OTHER).log
        assert (follower.start_offset, follower.end_offset) == (100, 101)
        assert pair.contents(ME) == pair.contents(OTHER)


@pytest.mark.spec("REP-51")
@pytest.mark.parametrize("policy", ["never", "all"])
async def test_a_new_follower_begins_with_the_batch_in_which_the_leaders_log_begins(
    policy: str,
) -> None:
    """DeleteRecords may end inside of a batch, which then is sent whole."""
    async with replica_pair({"flush.before.ack": policy}) as pair:
        await pair.lead(ME, epoch=0, isr=(ME,), to=(ME,))
        leader = pair.data(ME)
        await leader.start_append(b"a", b"b", b"c", acks=-1)
        await leader.start_append(b"d", b"e", b"f", acks=-1)
        pair.partition(ME).log.raise_start_offset(4)
        await pair.lead(ME, epoch=1, isr=(ME,))
        await pair.pass_ms(3_000)
        follower = pair.partition(OTHER).log
        assert (follower.start_offset, follower.end_offset) == (4, 6)
        assert pair.contents(OTHER) != b""
        assert pair.contents(ME).endswith(pair.contents(OTHER))
        await leader.start_append(b"g", acks=-1)
        assert follower.end_offset == 7


@pytest.mark.spec("REP-51", "REP-47")
async def test_a_leader_that_is_gone_for_a_while_is_fetched_from_again() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.data(ME).append(b"a")
        pair.links[ME].cut = True
        await pair.pass_ms(10_000)
        await pair.data(ME).append(b"b")
        pair.links[ME].cut = False
        await pair.pass_ms(2_000)
        assert pair.contents(ME) == pair.contents(OTHER)


@pytest.mark.spec("REP-42", "REP-47", "REP-51")
async def test_a_partition_that_is_refused_waits_and_the_others_go_on() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.lead(ME, epoch=0, key=SECOND)
        await pair.lead(ME, epoch=4, key=SECOND, to=(OTHER,))  # the leader has not heard of it
        await pair.data(ME).start_append(b"a", acks=-1)
        await pair.data(ME).append(b"b", key=SECOND)
        await pair.pass_ms(2_000)
        assert pair.contents(ME) == pair.contents(OTHER)
        assert pair.partition(OTHER, SECOND).log.end_offset == 0
        await pair.lead(ME, epoch=4, key=SECOND, to=(ME,))
        await pair.pass_ms(2_000)
        assert pair.contents(ME, SECOND) == pair.contents(OTHER, SECOND) != b""


@pytest.mark.spec("REP-51")
async def test_records_that_are_corrupt_twice_fail_the_partition_until_they_are_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.pass_ms(1_000)
        link = pair.links[ME]
        link.change = damaged
        await pair.data(ME).append(b"value")
        await pair.pass_ms(5_000)
        assert pair.partition(OTHER).log.end_offset == 0
        fetchers = pair.data(OTHER).data.fetchers
        assert fetchers.failed_count == 1
        assert "t-0 from offset 0, sent by broker 0, cannot be appended" in caplog.text
        link.change = lambda reply: reply
        await pair.pass_ms(60_000)
        assert pair.contents(ME) == pair.contents(OTHER)
        assert fetchers.failed_count == 0


@pytest.mark.parametrize("position", [20, 70], ids=["header", "value"])
async def test_a_leader_whose_copy_is_corrupt_stops_serving_it(position: int) -> None:
    """Scenario 8: the follower takes nothing of it, and the controller elects another leader."""
    disks = (ForgettingDisk(), ForgettingDisk())
    async with replica_pair(disks=disks) as pair:
        await pair.lead(ME, epoch=0, isr=(ME,), to=(ME,))
        for value in (b"first", b"second"):
            await pair.data(ME).append(value)
        log = pair.partition(ME).log
        log.flush()
        flip_bit(disks[0], log, position)
        await pair.lead(ME, epoch=1, isr=(ME,))
        await pair.pass_ms(5_000)
        assert pair.partition(OTHER).log.end_offset == 0
        assert pair.data(ME).hosted.offline == {TP}
        part = await pair.data(ME).read(0)
        assert part.error_code is ErrorCode.kafka_storage_error
        names = disks[0].list(log.dir)
        assert any(name.endswith(".quarantined") for name in names)
        events = await pair.data(ME).store.children(paths.LOG_DIR_EVENTS)
        assert len(events) == 1, "the controller is told"


async def test_a_fetch_that_is_repeated_is_answered_if_the_records_are_whole() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.pass_ms(1_000)
        link = pair.links[ME]
        link.change = damaged
        await pair.data(ME).append(b"value")
        await pair.pass_ms(1_500)
        assert not pair.data(ME).hosted.offline
        link.change = lambda reply: reply
        await pair.pass_ms(60_000)
        assert pair.contents(ME) == pair.contents(OTHER) != b""


async def test_with_flush_before_ack_a_follower_fetches_again_only_once_it_is_on_the_disk() -> None:
    async with replica_pair({"flush.before.ack": "all"}) as pair:
        await pair.lead(ME, epoch=0)
        await pair.pass_ms(1_000)
        pool = pair.data(OTHER).pool
        pool.held = True
        waiting = pair.data(ME).start_append(b"a", acks=-1, timeout_ms=60_000)
        await pair.pass_ms(2_000)
        assert pair.partition(OTHER).log.end_offset == 1
        assert not waiting.done()
        pool.held = False
        pool.run_all()
        assert (await waiting).error_code is ErrorCode.none
        assert pair.partition(OTHER).log.recovery_point == 1


async def test_a_partition_is_no_longer_copied_once_it_is_led_or_gone() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.pass_ms(1_000)
        fetchers = pair.data(OTHER).data.fetchers
        assert [len(fetcher) for fetcher in fetchers] == [1]
        await pair.lead(OTHER, epoch=1, to=(OTHER,))
        assert not list(fetchers)
        await pair.lead(ME, epoch=2, to=(OTHER,))
        pair.data(OTHER).hosted.remove(TP)
        assert not list(fetchers)


@pytest.mark.spec("REP-49")
async def test_a_fetch_costs_as_many_positions_as_have_changed() -> None:
    async with replica_pair() as pair:
        keys = [TopicPartition("t", index) for index in range(20)]
        for key in keys:
            await pair.lead(ME, epoch=0, key=key)
        await pair.pass_ms(2_000)
        before = len(pair.links[ME].requests)
        await pair.pass_ms(5_000)
        assert 8 <= len(pair.links[ME].requests) - before <= 12, "each waits for half a second"
        await pair.data(ME).start_append(b"a", acks=-1)
        assert pair.contents(ME) == pair.contents(OTHER)


async def test_a_follower_learns_that_the_leader_has_deleted_records() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.data(ME).start_append(b"a", b"b", b"c", acks=-1)
        await pair.pass_ms(1_000)
        pair.partition(ME).log.raise_start_offset(2)
        pair.partition(ME).watchers.report_change()
        await pair.pass_ms(2_000)
        assert pair.partition(OTHER).log.start_offset == 2
        assert pair.partition(ME).require_leadership().followers[OTHER].log_start == 2


@pytest.mark.spec("REP-43", "REP-44", "REP-52", "CFG-047", "CFG-052")
async def test_partitions_of_one_leader_are_spread_over_its_fetchers() -> None:
    settings = {"num.replica.fetchers": "2", "replica.fetch.wait.max.ms": "100"}
    async with replica_pair(settings) as pair:
        for index in range(8):
            await pair.lead(ME, epoch=0, key=TopicPartition("t", index))
        fetchers = pair.data(OTHER).data.fetchers
        assert sorted(len(fetcher) for fetcher in fetchers) in ([3, 5], [4, 4], [2, 6])
        await pair.pass_ms(CHANGING_MS + 200)  # until then they wait for less
        before = len(pair.links[ME].requests)
        await pair.pass_ms(1_000)
        assert 18 <= len(pair.links[ME].requests) - before <= 22, "two that wait 100 ms each"


@pytest.mark.spec("CFG-051")
@pytest.mark.parametrize(("backoff_ms", "is_copied"), [(1_000, True), (20_000, False)])
async def test_a_leader_that_was_away_is_asked_again_after_the_backoff(
    backoff_ms: int, is_copied: bool
) -> None:
    async with replica_pair({"replica.fetch.backoff.ms": str(backoff_ms)}) as pair:
        await pair.lead(ME, epoch=0)
        await pair.pass_ms(CHANGING_MS + 500)
        pair.links[ME].cut = True
        await pair.data(ME).start_append(b"a", acks=1)
        await pair.pass_ms(5_000)
        pair.links[ME].cut = False
        await pair.pass_ms(3_000)
        assert (pair.contents(OTHER) != b"") is is_copied
        await pair.pass_ms(20_000)
        assert pair.contents(OTHER) == pair.contents(ME) != b""


@pytest.mark.spec("CFG-047", "CFG-048")
@pytest.mark.parametrize(("min_bytes", "is_copied"), [(1, True), (10_000, False)])
async def test_a_fetch_waits_for_the_least_number_of_bytes_or_its_longest_wait(
    min_bytes: int, is_copied: bool
) -> None:
    settings = {"replica.fetch.min.bytes": str(min_bytes), "replica.fetch.wait.max.ms": "8000"}
    async with replica_pair(settings) as pair:
        await pair.lead(ME, epoch=0)
        await pair.pass_ms(CHANGING_MS + 1_000)  # until then they wait for less
        await pair.data(ME).start_append(b"a", acks=1)
        await pair.pass_ms(500)
        assert (pair.contents(OTHER) != b"") is is_copied
        await pair.pass_ms(8_000)
        assert pair.contents(OTHER) == pair.contents(ME) != b""


@pytest.mark.spec("CFG-049", "CFG-050", "ERR-53")
@pytest.mark.parametrize(
    ("setting", "most_bytes"),
    [
        ("replica.fetch.max.bytes", 4 * 3_000),  # of each partition
        ("replica.fetch.response.max.bytes", 3_000),  # of all of them
        (None, None),
    ],
)
async def test_a_reply_holds_at_most_so_many_bytes_of_records(
    setting: str | None, most_bytes: int | None
) -> None:
    keys = [TopicPartition("t", index) for index in range(4)]
    async with replica_pair({} if setting is None else {setting: "3000"}) as pair:
        sizes: list[int] = []

        def measured(reply: RawReply) -> RawReply:
            sizes.append(len(reply.frame))
            return reply

        for key in keys:
            await pair.lead(ME, epoch=0, isr=(ME,), key=key, to=(ME,))
            for _ in range(50):
                await pair.data(ME).append(b"." * 400, key=key)
        pair.links[ME].change = measured
        for key in keys:
            await pair.lead(ME, epoch=1, isr=(ME,), key=key)
        await pair.pass_ms(10_000)
        for key in keys:
            assert pair.contents(OTHER, key) == pair.contents(ME, key) != b""
        if most_bytes is None:
            assert max(sizes) > 50_000, "without a bound they are large"
        else:
            assert most_bytes / 2 < max(sizes) < most_bytes + 1_000


@pytest.mark.spec("MON-12", "MON-20")
async def test_what_followers_copy_is_counted() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.data(ME).start_append(b"a", b"b", acks=-1)
        await pair.pass_ms(1_000)
        side, size = pair.data(OTHER), len(pair.contents(ME))
        assert side.count("kafka_server_fetcherstats_bytes_total") == size
        assert side.count("kafka_server_fetcherstats_requests_total") >= 2
        by_topic = "kafka_server_brokertopicmetrics_replication_bytes_in_total"
        assert side.count(by_topic, topic="t") == size
        assert side.count("kafka_server_replicafetchermanager_max_lag") == 0
        assert side.count("kafka_server_replicafetchermanager_failed_partitions_count") == 0


def damaged(reply: RawReply) -> RawReply:
    """The same reply, with the last record's value changed."""
    content = bytearray(reply.frame)
    at = content.rfind(b"value")
    if at >= 0:
        content[at] ^= 1
    return reply._replace(frame=memoryview(bytes(content)))


@pytest.mark.spec("REP-49", "REP-13")
async def test_a_follower_waits_where_the_leaders_log_ends_in_a_gap() -> None:
    async with replica_pair() as pair:
        await pair.lead(ME, epoch=0)
        await pair.data(ME).start_append(b"a", acks=-1)
        await pair.pass_ms(1_000)
        pair.partition(ME).log.roll(WallMs(0), base_offset=10)  # as old compaction left it
        before = len(pair.links[ME].requests)
        await pair.pass_ms(5_000)
        assert len(pair.links[ME].requests) - before <= 12, "each waits for half a second"
        await pair.data(ME).start_append(b"b", acks=-1)
        assert pair.partition(OTHER).log.end_offset == 11


@pytest.mark.spec("REP-49", "LOG-68")
async def test_a_follower_reaches_the_end_of_a_log_that_was_compacted_to_its_end() -> None:
    """Tombstones whose time is over are removed, but the last batch of the log stays."""
    settings = {"log.cleanup.policy": "compact", "log.cleaner.delete.retention.ms": "0"}
    async with replica_pair(settings) as pair:
        await pair.lead(ME, epoch=0, isr=(ME,), to=(ME,))
        leader, leader_log = pair.data(ME), pair.partition(ME).log
        for value in (b"a", b"b", None):
            await leader.start_append(records=leader.batch(value, key=b"k"))
        leader_log.roll(WallMs(0))
        for now_ms in (1_000, 2_000):
            compact(leader_log, now_ms)
        assert len(pair.contents(ME)) < 2 * len(leader.batch(None, key=b"k"))
        await pair.lead(ME, epoch=1, isr=(ME,))
        await pair.pass_ms(2_000)
        assert pair.partition(OTHER).log.end_offset == 3
        assert pair.partition(ME).require_leadership().isr == {ME, OTHER}


async def test_a_new_leader_does_not_wait_for_a_follower_whose_fetch_was_parked_here() -> None:
    """Of an idle partition: without a word the follower would come back after 10 s."""
    async with replica_pair({"replica.fetch.wait.max.ms": "10000"}) as pair:
        await pair.lead(ME, epoch=0, key=SECOND)
        await pair.lead(OTHER, epoch=0)
        await pair.pass_ms(CHANGING_MS + 100)
        clock = pair.data(ME).clock
        began = clock.mono_ms()
        await pair.lead(ME, epoch=1)
        await pair.data(ME).start_append(b"a", acks=-1)
        assert clock.mono_ms() - began < 100


@pytest.mark.parametrize("later_ms", [1, 10, 50])
async def test_a_follower_that_is_told_before_its_leader_asks_again_soon(later_ms: int) -> None:
    async with replica_pair({"replica.fetch.backoff.ms": "10000"}) as pair:
        await pair.lead(OTHER, epoch=0)
        await pair.lead(ME, epoch=1, to=(OTHER,))
        await pair.pass_ms(later_ms)
        await pair.lead(ME, epoch=1, to=(ME,))
        clock = pair.data(ME).clock
        began = clock.mono_ms()
        await pair.data(ME).start_append(b"a", acks=-1)
        assert clock.mono_ms() - began < 100
