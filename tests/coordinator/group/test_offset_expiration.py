"""Offsets that nobody has use for any more, and groups with nothing left."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.shard import EXPIRE
from ottla.model.clock import WallMs
from ottla.model.ids import TopicPartition
from tests.coordinator.group.scene import GROUP, Scene, offset

DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS
CHECK_MS = 600_000


@pytest.mark.spec("GRP-67", "GRP-68", "GRP-70", "GRP-71")
def test_a_simple_consumers_offsets_go_a_week_after_their_commit_and_the_group_with_them() -> None:
    scene = Scene()
    scene.commit(offset(5))
    scene.pass_ms(WEEK_MS - CHECK_MS)
    scene.commit(offset(6, "u"))
    scene.pass_ms(2 * CHECK_MS)
    assert (scene.committed(), scene.committed("u")) == (None, 6)
    scene.pass_ms(WEEK_MS)
    assert GROUP not in scene.shard.groups
    assert [value for _, value in scene.log[-2:]] == [None, None]
    assert GROUP not in scene.crash().shard.groups


@pytest.mark.spec("GRP-70", "GRP-10")
def test_an_empty_groups_offsets_go_a_week_after_its_last_member() -> None:
    scene = Scene()
    [leader] = scene.stable(session_ms=1_800_000)
    scene.commit(offset(5), member_id=leader.member_id, generation=1)
    for _ in range(8 * 96):
        scene.pass_ms(DAY_MS // 96)
        scene.heartbeat(leader)
    assert scene.committed() == 5, "its members read the topic"
    scene.leave(MemberIdentity(leader.member_id))
    scene.pass_ms(WEEK_MS - CHECK_MS)
    assert scene.committed() == 5
    scene.pass_ms(2 * CHECK_MS)
    assert scene.committed() is None


@pytest.mark.spec("GRP-69", "GRP-70")
def test_of_a_group_with_members_the_topics_it_does_not_read_go() -> None:
    scene = Scene()
    scene.commit(offset(5), offset(6, "u"))
    [leader] = scene.stable(session_ms=1_800_000)
    for _ in range(8 * 96):
        scene.pass_ms(DAY_MS // 96)
        scene.heartbeat(leader)
    assert (scene.committed(), scene.committed("u")) == (5, None)


@pytest.mark.spec("GRP-69")
def test_an_offset_that_a_transaction_writes_stays() -> None:
    scene = Scene()
    scene.commit(offset(5))
    scene.commit(offset(6), transactional=True, producer=7)
    scene.pass_ms(2 * WEEK_MS)
    assert scene.committed() == 5
    assert GROUP in scene.shard.groups


@pytest.mark.spec("GRP-52", "GRP-70")
def test_an_explicit_expiry_counts_before_the_brokers_own() -> None:
    scene = Scene()
    scene.commit(offset(5), retention_ms=DAY_MS)
    scene.commit(offset(6, "u"), retention_ms=9 * DAY_MS)
    scene.pass_ms(DAY_MS + CHECK_MS)
    assert scene.committed() is None
    scene.pass_ms(WEEK_MS)
    assert scene.committed("u") == 6


def test_offsets_of_other_types_of_groups_stay_while_they_have_members() -> None:
    scene = Scene()
    scene.commit(offset(5))
    scene.stable(type="connect", session_ms=1_800_000)
    scene.now = WallMs(scene.now + WEEK_MS)
    scene.execute(scene.shard.on_timer(EXPIRE, scene.now))
    assert scene.committed() == 5


@pytest.mark.spec("GRP-72")
def test_offsets_of_deleted_partitions_go() -> None:
    scene = Scene()
    scene.commit(offset(5), offset(6, partition=1), offset(7, "u"))
    gone = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("x", 0)]
    scene.execute(scene.shard.forget_partitions(gone, scene.now))
    assert (scene.committed(), scene.committed("t", 1), scene.committed("u")) == (None, None, 7)


def test_many_offsets_are_looked_at_in_turns() -> None:
    scene = Scene()
    for number in range(30):
        scene.commit(*(offset(1, partition=part) for part in range(300)), group=f"g{number}")
    scene.now = WallMs(scene.now + WEEK_MS)
    scene.pass_ms(0)
    assert 0 < len(scene.shard.groups) < 30
    scene.pass_ms(10)
    assert not scene.shard.groups
