"""What members of groups may take of the memory."""

from __future__ import annotations

import logging

import pytest

from ottla.coordinator.group.classic.member import Protocol
from ottla.coordinator.group.memory import MEMBER_BYTES, GroupMemory
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
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
    after.unloaded()
    assert after._memory.total == 0
