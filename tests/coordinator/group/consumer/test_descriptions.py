"""Consumer groups as tools see them: listed, described, deleted, expired."""

from __future__ import annotations

import pytest

from ottla.coordinator.group import descriptions, offset_commit
from ottla.coordinator.group.consumer.service import view
from ottla.coordinator.group.settings import GroupSettings
from ottla.model.errors import ErrorCode
from tests.coordinator.group.consumer.scene import Client, ConsumerScene, parts, settle
from tests.coordinator.group.scene import GROUP, code_of, offset

DAY_MS = 24 * 3_600_000


def emptied() -> ConsumerScene:
    scene = ConsumerScene()
    a = Client(scene, "a")
    settle(a)
    scene.commit(offset(7), member_id="a", generation=1)
    a.leave()
    return scene


def test_a_view_shows_what_each_holds_and_shall_hold() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a", assignor="range"), Client(scene, "b")
    settle(a)
    b.beat()
    shown = view(scene.it, GroupSettings())
    assert (shown.state, shown.epoch, shown.assignment_epoch) == ("Reconciling", 2, 2)
    assert shown.assignor == "range"
    assert {each.member.id: each.target for each in shown.members} == {
        "a": parts("t", 0, 1),
        "b": parts("t", 2, 3),
    }


def test_such_a_group_is_listed_by_its_type_and_is_no_classic_group() -> None:
    scene = emptied()
    listed = descriptions.overview(scene.it)
    assert listed == (GROUP, "consumer", "Empty", "consumer")
    assert descriptions.GroupFilter(set(), {"consumer"}).passes(listed)
    assert not descriptions.GroupFilter(set(), {"classic"}).passes(listed)
    assert descriptions.summary(scene.it) is None


@pytest.mark.spec("GRP-71")
def test_deleting_takes_everything_away() -> None:
    scene = emptied()
    scene.execute(descriptions.delete(scene.it, scene.shard.offsets, scene.now))
    assert scene.shard.groups == {}
    assert scene.after_a_crash().shard.groups == {}
    live: dict[bytes, bytes] = {}
    for key, value in scene.log:
        live.pop(key, None) if value is None else live.__setitem__(key, value)
    assert live == {}


def test_a_group_with_members_is_not_deleted() -> None:
    scene = ConsumerScene()
    settle(Client(scene, "a"))
    code = code_of(descriptions.delete, scene.it, scene.shard.offsets, scene.now)
    assert code is ErrorCode.non_empty_group


@pytest.mark.spec("GRP-70", "GRP-71")
def test_an_empty_group_goes_with_its_last_offset() -> None:
    scene = emptied()
    scene.pass_ms(6 * DAY_MS)
    assert scene.committed() == 7
    scene.pass_ms(2 * DAY_MS)
    assert scene.shard.groups == {}


@pytest.mark.spec("GRP-69")
def test_offsets_of_topics_in_use_do_not_expire() -> None:
    scene = ConsumerScene(consumer_session_timeout_ms=100 * DAY_MS)
    settle(Client(scene, "a"))
    scene.commit(offset(7), offset(8, "other"), member_id="a", generation=1)
    scene.pass_ms(8 * DAY_MS)
    assert (scene.committed(), scene.committed("other")) == (7, None)


def test_offsets_of_topics_in_use_are_not_deleted() -> None:
    scene = ConsumerScene()
    settle(Client(scene, "a"))
    scene.commit(offset(7), offset(8, "other"), member_id="a", generation=1)
    keys = [("t", 0), ("other", 0)]
    refused = scene.execute(
        offset_commit.delete_offsets(scene.it, scene.shard.offsets, keys, scene.now)
    )
    assert refused == {"t": ErrorCode.group_subscribed_to_topic}
    assert (scene.committed(), scene.committed("other")) == (7, None)
