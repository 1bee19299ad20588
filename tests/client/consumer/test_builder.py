from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.consumer.assignors.assignor import RangeAssignor
from ottla.client.consumer.builder import ConsumerBuilder
from ottla.client.consumer.group.classic_loop import ClassicLoop
from ottla.client.consumer.group.consumer_loop import ConsumerProtocolLoop
from ottla.client.consumer.group.standalone_loop import StandaloneLoop
from ottla.model.errors import UserError


def blueprint(**options: Any) -> ConsumerBuilder:
    return ConsumerBuilder(options, None, (None, None), ())


async def call(function: Callable[[], object]) -> object:
    return function()


def group_of(plan: ConsumerBuilder) -> object:
    core = plan.core()
    core.attach(call, lambda: None, lambda chunk: None, plan.group)
    return core.group


@pytest.mark.spec("CFG-106", "CFG-080")
@pytest.mark.parametrize(
    ("options", "kind", "name"),
    [
        ({}, StandaloneLoop, "consumer"),
        ({"group_id": "g"}, ClassicLoop, "consumer-g"),
        ({"group_id": "g", "group_protocol": "consumer"}, ConsumerProtocolLoop, "consumer-g"),
        ({"group_id": "g", "client_id": "mine"}, ClassicLoop, "mine"),
    ],
)
def test_the_options_choose_the_group(options: dict[str, Any], kind: type, name: str) -> None:
    plan = blueprint(**options)
    assert isinstance(group_of(plan), kind)
    assert plan.config.client_id == name


@pytest.mark.spec("CON-39", "CFG-121")
@pytest.mark.parametrize(
    "strategy", ["range,sticky", ["range", "sticky"], [RangeAssignor(), "sticky"]]
)
def test_strategies_are_names_or_objects(strategy: Any) -> None:
    group = group_of(blueprint(group_id="g", partition_assignment_strategy=strategy))
    assert isinstance(group, ClassicLoop)
    fields = group._member.join({"t"}, ())
    assert [each["name"] for each in fields["protocols"]] == ["range", "sticky"]


@pytest.mark.spec("CON-39")
def test_one_object_is_a_list_of_one() -> None:
    class Mine(RangeAssignor):
        name = "mine"  # type: ignore[misc]  # another name is the point

    group = group_of(blueprint(group_id="g", partition_assignment_strategy=Mine()))
    assert isinstance(group, ClassicLoop)
    assert [each["name"] for each in group._member.join({"t"}, ())["protocols"]] == ["mine"]


def test_kafkas_names_and_pythons_are_the_same_options() -> None:
    plan = ConsumerBuilder({"group_id": "g"}, {"max.poll.records": "7"}, (None, None), ())
    assert (plan.config.group_id, plan.config.max_poll_records) == ("g", 7)
    with pytest.raises(UserError, match=r"group\.id is given twice"):
        ConsumerBuilder({"group_id": "g"}, {"group.id": "g"}, (None, None), ())


def test_members_of_the_new_protocol_name_themselves() -> None:
    plan = blueprint(group_id="g", group_protocol="consumer")
    names = set()
    for _ in range(2):
        group = group_of(plan)
        assert isinstance(group, ConsumerProtocolLoop)
        names.add(group.metadata.member_id)
    assert len(names) == 2


@pytest.mark.spec("CFG-116", "CFG-115")
def test_the_old_name_of_a_setting_still_works() -> None:
    assert blueprint(fetch_message_max_bytes=7).config.max_partition_fetch_bytes == 7
    plan = ConsumerBuilder({}, {"fetch.message.max.bytes": "8"}, (None, None), ())
    assert plan.config.max_partition_fetch_bytes == 8


@pytest.mark.parametrize("strategy", [[7], [RangeAssignor], [object(), "range"]])
def test_a_strategy_that_is_no_assignor_is_refused(strategy: object) -> None:
    with pytest.raises(UserError, match="is not an Assignor: expected a name, or an object with"):
        blueprint(partition_assignment_strategy=strategy, group_id="g")
