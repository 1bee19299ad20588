from __future__ import annotations

import pytest

from ottla.client.consumer.assignors.assignor import Protocols, RangeAssignor
from ottla.client.consumer.assignors.choice import BUILT_IN, assignors, protocol_of
from ottla.model.errors import UserError


class Mine(RangeAssignor):
    name = "mine"  # type: ignore[misc]  # another name is the point


@pytest.mark.spec("CON-29", "CFG-121")
def test_strategies_keep_their_order_and_their_names() -> None:
    assert [one.name for one in assignors(["sticky", "range"])] == ["sticky", "range"]
    assert all(make().name == name for name, make in BUILT_IN.items())


@pytest.mark.spec("CON-39")
def test_a_strategy_of_ones_own_may_stand_among_them() -> None:
    mine = Mine()
    assert assignors([mine, "range"])[0] is mine


@pytest.mark.spec("CFG-121")
def test_the_java_clients_class_names_mean_the_same() -> None:
    (one,) = assignors(["org.apache.kafka.clients.consumer.StickyAssignor"])
    assert one.name == "sticky"


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        (["rnage"], "partition.assignment.strategy='rnage': expected one of range, roundrobin"),
        ([], "partition.assignment.strategy is empty"),
        (["range", "range"], "'range' is listed more than once"),
    ],
)
def test_a_bad_choice_is_named(chosen: list[str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        assignors(chosen)


def test_a_member_is_cooperative_only_if_all_its_strategies_are() -> None:
    assert protocol_of(assignors(["cooperative-sticky"])) is Protocols.COOPERATIVE
    assert protocol_of(assignors(["range", "cooperative-sticky"])) is Protocols.EAGER
