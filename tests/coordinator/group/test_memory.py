"""What members and offsets of groups may take of the memory."""

from __future__ import annotations

import logging

import pytest

from ottla.coordinator.group.classic.member import Protocol
from ottla.coordinator.group.consumer.group import TOPIC_BYTES
from ottla.coordinator.group.memory import MEMBER_BYTES, GroupMemory
from ottla.coordinator.group.offset_commit import OffsetToCommit
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import Committed, OffsetChanged, offset_record
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId, TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.header import HEADER_SIZE
from ottla.protocol.records.record import NewRecord
from tests.coordinator.group.consumer.scene import Client, ConsumerScene
from tests.coordinator.group.scene import Scene

MB = 1 << 20
NOW = 1_000_000


def refused(memory: GroupMemory, size: int, limit: int = 8 * MB, now: int = NOW) -> bool:
    try:
        memory.check("g", size, limit, WallMs(now))
    except KafkaError as refusal:
        assert refusal.code is ErrorCode.group_max_size_reached
        return True
    return False


def test_large_members_leave_a_quarter_to_small_ones() -> None:
    memory = GroupMemory()
    memory.note("a", 5 * MB)
    assert not refused(memory, MB)
    assert refused(memory, 2 * MB)
    memory.note("b", 2 * MB)
    assert not refused(memory, 2_000)
    memory.note("b", 3 * MB)
    assert refused(memory, 2_000)
    assert not refused(memory, 0), "who has a place and brings no more may stay"
    assert not refused(memory, 2_000, limit=-1)
    memory.note("a", 0)
    assert memory.total == 3 * MB


def test_the_log_says_it_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    memory = GroupMemory()
    memory.note("a", 8 * MB)
    with caplog.at_level(logging.WARNING):
        assert all(refused(memory, MB, now=NOW + ms) for ms in range(0, 20_000, 100))
    assert len(caplog.records) == 2
    assert "memory.limit.bytes" in caplog.text


def large(size: int) -> tuple[Protocol, ...]:
    return (Protocol("range", bytes(size)),)


def test_a_member_with_more_metadata_than_there_is_room_for_is_told_that_groups_are_full() -> None:
    scene = Scene(memory_bytes=8 * MB)
    for number in range(5):
        scene.start_join(group=f"g{number}", protocols=large(MB))
    assert scene.shard._memory.total >= 5 * MB
    with pytest.raises(KafkaError) as refusal:
        scene.start_join(group="g7", protocols=large(MB))
    assert refusal.value.code is ErrorCode.group_max_size_reached
    assert "g7" not in scene.shard.groups
    assert len(scene.stable(2)) == 2, "ordinary members are served as ever"


def test_members_that_go_give_their_memory_back() -> None:
    scene = Scene(memory_bytes=8 * MB)
    scene.start_join(group="g1", protocols=large(5 * MB), session_ms=6_000)
    scene.start_join(group="g2", needs_known_id=True)
    assert scene.shard._memory.total >= 5 * MB + 2 * MEMBER_BYTES
    scene.pass_ms(600_000)
    assert scene.shard._memory.total == 0


def test_what_was_loaded_counts_and_is_given_back_when_another_coordinates() -> None:
    scene = Scene()
    scene.stable(2, protocols=large(1_000))
    before = scene.shard._memory.total
    assert before > 2 * (MEMBER_BYTES + 1_000)
    after = scene.crash().shard
    assert after._memory.total == before
    after.on_unloaded()
    assert after._memory.total == 0


def offset(partition: int, metadata: str = "", topic: str = "t") -> OffsetToCommit:
    return OffsetToCommit(topic, partition, 7, -1, metadata)


def test_offsets_of_further_partitions_are_refused_and_known_ones_are_not() -> None:
    scene = Scene(offsets_memory_bytes=100_000)
    codes = [scene.commit(offset(number, "m" * 1_000))[0] for number in range(200)]
    accepted = codes.index(ErrorCode.invalid_commit_offset_size)
    assert 70 < accepted < 100
    assert set(codes[accepted:]) == {ErrorCode.invalid_commit_offset_size}
    assert scene.committed(partition=accepted) is None
    mixed = scene.commit(offset(0, "n" * 1_000), offset(500, "m" * 1_000), offset(1))
    assert mixed == [ErrorCode.none, ErrorCode.invalid_commit_offset_size, ErrorCode.none]
    assert scene.shard.offsets.memory.total <= 100_000
    assert scene.commit(offset(0), group="another") == [ErrorCode.invalid_commit_offset_size]


def test_every_way_to_change_offsets_is_counted_and_given_back() -> None:
    scene = Scene()
    memory = scene.shard.offsets.memory
    scene.commit(*(offset(number, "m" * number) for number in range(5)))
    scene.commit(offset(0, topic="u"))
    before = memory.total
    scene.commit(offset(1, "a longer text than before"), offset(9), transactional=True, producer=7)
    assert memory.total > before
    scene.shard.end_transaction(ProducerId(7), committed=False)
    assert memory.total == before
    scene.commit(offset(1), transactional=True, producer=8)
    scene.shard.end_transaction(ProducerId(8), committed=True)
    assert memory.total == before - 1, "of one character of metadata"
    assert scene.crash().shard.offsets.memory.total >= memory.total
    partitions = [TopicPartition("t", number) for number in range(5)] + [TopicPartition("u", 0)]
    scene.execute(scene.shard.forget_partitions(partitions, scene.now))
    assert memory.total == 0


def test_offsets_replayed_in_bulk_count_as_if_they_were_replayed_one_by_one() -> None:
    changes = [
        OffsetChanged("g", "t", number % 3, Committed(number, -1, "m" * number, WallMs(1)))
        for number in range(6)
    ]
    stored = [offset_record(change) for change in changes]
    batch = bytes(build([NewRecord(one.key, one.value) for one in stored]))
    singly, bulk = Offsets(), Offsets()
    for position, change in enumerate(changes):
        singly.apply(change, position, NO_PRODUCER)
    replayed = bulk.bulk.take(batch, HEADER_SIZE, len(stored), 0)
    assert replayed.records == len(stored)
    assert bulk.memory.total == singly.memory.total > 0
    memory = bulk.memory
    bulk.release()
    bulk.apply(changes[0], 9, NO_PRODUCER)
    assert memory.total == 0, "nothing that comes later counts for it"


def test_members_of_the_consumer_protocol_count_and_too_many_are_refused() -> None:
    scene = ConsumerScene(memory_bytes=MB)
    first = Client(scene, "first")
    first.beat()
    joined = 0
    with pytest.raises(KafkaError) as refusal:
        for number in range(100):
            Client(scene, f"large-{number}", *(f"topic-{n}" for n in range(1_000))).beat()
            joined += 1
    assert refusal.value.code is ErrorCode.group_max_size_reached
    assert 5 < joined < 20
    first.beat()
    Client(scene, "small").beat()
    assert scene.shard._memory.total == scene.it.memory_bytes <= MB
    after = scene.after_a_crash()
    assert after.shard._memory.total == scene.it.memory_bytes
    after.shard.on_unloaded()
    assert after.shard._memory.total == 0


def test_consumer_groups_without_members_count_for_nothing_but_their_topics() -> None:
    scene = ConsumerScene(memory_bytes=MB)
    clients = [Client(scene, f"c{number}") for number in range(3)]
    for _ in range(4):
        for client in clients:
            client.beat()
            client.held = client.given
    assert scene.it.memory_bytes > 3 * 1_500 + 4 * 200
    for client in clients:
        scene.beat(client.ask(epoch=-1))
    assert scene.it.memory_bytes == TOPIC_BYTES * len(scene.it.topics)
