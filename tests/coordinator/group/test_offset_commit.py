"""Who may change a group's offsets."""

from __future__ import annotations

import pytest

from ottla.coordinator.group import offset_commit
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import GROUP, Scene, code_of, offset


@pytest.mark.spec("GRP-60", "GRP-64")
def test_a_simple_consumer_commits_in_a_group_without_members() -> None:
    scene = Scene()
    assert scene.commit(offset(5), offset(6, "u", 3)) == [ErrorCode.none] * 2
    assert (scene.committed(), scene.committed("u", 3)) == (5, 6)
    assert (scene.group.phase, scene.group.protocol_type) == (GroupPhase.EMPTY, None)
    after = scene.crash()
    assert (after.committed(), after.group.phase) == (5, GroupPhase.EMPTY)


@pytest.mark.spec("GRP-60", "GRP-47")
def test_a_member_commits_for_its_own_generation_only() -> None:
    scene = Scene()
    [leader] = scene.stable()
    mine = {"member_id": leader.member_id}
    assert scene.commit(offset(5), generation=1, **mine) == [ErrorCode.none]
    assert code_of(scene.commit, offset(9), generation=0, **mine) is ErrorCode.illegal_generation
    assert code_of(scene.commit, offset(9), generation=1, member_id="x") is (
        ErrorCode.unknown_member_id
    )
    assert code_of(scene.commit, offset(9)) is ErrorCode.unknown_member_id
    assert scene.committed() == 5


@pytest.mark.spec("GRP-60")
def test_there_is_no_generation_in_a_group_that_does_not_exist() -> None:
    scene = Scene()
    assert code_of(scene.commit, offset(5), generation=1) is ErrorCode.illegal_generation
    new = {"unknown_group": ErrorCode.group_id_not_found}
    assert code_of(scene.commit, offset(5), generation=1, **new) is ErrorCode.group_id_not_found


@pytest.mark.spec("GRP-60")
def test_commits_wait_for_the_assignment_but_not_for_members_that_rejoin() -> None:
    scene = Scene()
    waiting = scene.start_join()
    scene.pass_ms(1)
    mine = {"member_id": waiting[0].member_id, "generation": 1}
    assert code_of(scene.commit, offset(5), **mine) is ErrorCode.rebalance_in_progress
    scene.share_out([waiting[0]])
    scene.start_join()
    assert scene.group.phase is GroupPhase.PREPARING
    assert scene.commit(offset(5), **mine) == [ErrorCode.none]


@pytest.mark.spec("GRP-60", "GRP-44")
def test_a_commit_shows_that_its_member_is_alive() -> None:
    scene = Scene()
    [leader] = scene.stable()
    for _ in range(4):
        scene.pass_ms(9_000)
        scene.commit(offset(5), member_id=leader.member_id, generation=1)
    assert leader.member_id in scene.group.members


@pytest.mark.spec("GRP-60", "GRP-48")
def test_a_fenced_instance_cannot_commit() -> None:
    scene = Scene()
    [leader] = scene.stable(instance="i")
    scene.start_join(instance="i")
    old = {"member_id": leader.member_id, "generation": 1, "instance": "i"}
    assert code_of(scene.commit, offset(9), **old) is ErrorCode.fenced_instance_id


@pytest.mark.spec("GRP-61")
def test_metadata_that_is_too_long_keeps_its_own_partition_back() -> None:
    scene = Scene()
    codes = scene.commit(offset(5, metadata="x" * 4097), offset(6, "u", metadata="x" * 4096))
    assert codes == [ErrorCode.offset_metadata_too_large, ErrorCode.none]
    assert (scene.committed(), scene.committed("u")) == (None, 6)
    [code] = scene.commit(offset(5, metadata="\N{EURO SIGN}" * 1366))
    assert code is ErrorCode.offset_metadata_too_large, "bytes count, not characters"


@pytest.mark.spec("GRP-62")
def test_a_commit_that_cannot_be_stored_changes_nothing() -> None:
    scene = Scene()
    scene.commit(offset(5))
    scene.refuse = ErrorCode.coordinator_not_available
    assert code_of(scene.commit, offset(9)) is ErrorCode.coordinator_not_available
    assert scene.committed() == 5


@pytest.mark.spec("GRP-66")
def test_a_transaction_commits_whatever_the_group_is_doing() -> None:
    scene = Scene()
    waiting = scene.start_join()
    scene.pass_ms(1)
    inside = {"transactional": True, "producer": 7}
    assert scene.commit(offset(5), **inside) == [ErrorCode.none]
    wrong = {"member_id": waiting[0].member_id, "generation": 9}
    assert code_of(scene.commit, offset(5), **inside, **wrong) is ErrorCode.illegal_generation
    assert scene.committed() is None


def test_offsets_are_deleted_in_topics_that_nobody_reads() -> None:
    scene = Scene()
    scene.commit(offset(5), offset(6, "u"))
    scene.stable()
    keys = [("t", 0), ("u", 0), ("never committed", 0)]

    def delete() -> dict[str, ErrorCode]:
        group = scene.shard.groups.get(GROUP)
        outcome = offset_commit.delete_offsets(group, scene.shard.offsets, keys, scene.now)
        refused: dict[str, ErrorCode] = scene.execute(outcome)
        return refused

    assert delete() == {"t": ErrorCode.group_subscribed_to_topic}
    assert (scene.committed(), scene.committed("u")) == (5, None)
    scene.pass_ms(20_000)
    assert delete() == {}
    assert scene.committed() is None


def test_a_group_that_is_no_consumers_keeps_its_offsets_while_it_has_members() -> None:
    scene = Scene()
    nothing = scene.shard.offsets
    code = code_of(offset_commit.delete_offsets, None, nothing, [], 0)
    assert code is ErrorCode.group_id_not_found
    scene.stable(type="connect")
    code = code_of(offset_commit.delete_offsets, scene.group, nothing, [], 0)
    assert code is ErrorCode.non_empty_group
