"""Who may commit and fetch the offsets of a consumer group."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.consumer.group import check_fetch
from ottla.model.errors import ErrorCode
from ottla.model.ids import ProducerId
from tests.coordinator.group.consumer.scene import Client, ConsumerScene, protocols, settle
from tests.coordinator.group.scene import code_of, offset


def scene_of_two() -> tuple[ConsumerScene, Client]:
    """One member of each protocol, in epoch 2."""
    scene = ConsumerScene()
    a = Client(scene, "a")
    settle(a)
    scene.start_join("classic", protocols=protocols("range"))
    return scene, a


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        ("a", 1, ErrorCode.none),
        ("a", 0, ErrorCode.stale_member_epoch),
        ("a", 2, ErrorCode.stale_member_epoch),
        ("a", -1, ErrorCode.stale_member_epoch),
        ("b", 1, ErrorCode.unknown_member_id),
        ("", -1, ErrorCode.unknown_member_id),
        ("classic", 2, ErrorCode.none),
        ("classic", 1, ErrorCode.illegal_generation),
    ],
)
def test_members_commit_in_their_epoch(member: str, epoch: int, code: ErrorCode) -> None:
    scene, _ = scene_of_two()
    asked = {"member_id": member, "generation": epoch}
    assert code_of(scene.commit, offset(7), **asked) is code
    assert scene.committed() == (7 if code is ErrorCode.none else None)


def test_a_transactional_producer_hears_of_generations() -> None:
    scene, _ = scene_of_two()
    asked = {"member_id": "a", "transactional": True, "producer": ProducerId(5)}
    assert code_of(scene.commit, offset(7), generation=0, **asked) is ErrorCode.illegal_generation
    assert code_of(scene.commit, offset(7), generation=1, **asked) is ErrorCode.none
    assert scene.committed() is None, "not before the transaction ends"
    scene.shard.end_transaction(ProducerId(5), committed=True)
    assert scene.committed() == 7


def test_a_client_that_knows_no_epochs_must_be_classic() -> None:
    scene, _ = scene_of_two()
    old = {"generation": 1, "knows_epochs": False}
    code = code_of(scene.commit, offset(7), member_id="a", **old)
    assert code is ErrorCode.unsupported_version
    old["generation"] = 2
    assert code_of(scene.commit, offset(7), member_id="classic", **old) is ErrorCode.none


def test_tools_commit_while_nobody_is_there() -> None:
    scene, a = scene_of_two()
    assert code_of(scene.commit, offset(7)) is ErrorCode.unknown_member_id
    a.leave()
    scene = ConsumerScene()
    b = Client(scene, "b")
    settle(b)
    b.leave()
    assert code_of(scene.commit, offset(7)) is ErrorCode.none
    assert scene.it.members == {}


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        (None, -1, ErrorCode.none),
        ("", -1, ErrorCode.none),
        ("a", 1, ErrorCode.none),
        ("a", 0, ErrorCode.stale_member_epoch),
        ("b", 1, ErrorCode.unknown_member_id),
        (None, 3, ErrorCode.unknown_member_id),
        ("classic", 1, ErrorCode.illegal_generation),
    ],
)
def test_members_fetch_in_their_epoch(member: str | None, epoch: int, code: ErrorCode) -> None:
    scene, _ = scene_of_two()
    assert code_of(check_fetch, scene.it, member, epoch) is code
