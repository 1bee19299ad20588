"""Which broker looks after a group or a transactional id."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.cluster_view import Node
from ottla.client.coordinators import CoordinatorKind, Coordinators
from ottla.client.errors import ErrorCode, KafkaError

THERE = {"node_id": 3, "host": "h", "port": 9, "error_code": ErrorCode.none, "error_message": None}
ALONE = SimpleNamespace(coordinators=(), **THERE)
AMONG_MANY = SimpleNamespace(coordinators=(SimpleNamespace(key="g", **THERE),))
REFUSED = SimpleNamespace(
    coordinators=(),
    **{**THERE, "error_code": ErrorCode.group_authorization_failed, "error_message": "not you"},
)


def asking(*replies: Any) -> tuple[Coordinators, list[dict[str, Any]]]:
    answers, asked = list(replies), list[dict[str, Any]]()

    async def ask(key: int, fields: dict[str, Any]) -> Any:
        asked.append(fields)
        return answers.pop(0)

    return Coordinators(ask), asked


@pytest.mark.parametrize("reply", [ALONE, AMONG_MANY])
def test_old_and_new_replies_name_the_same_broker(reply: Any) -> None:
    coordinators, asked = asking(reply)
    assert asyncio.run(coordinators.find(CoordinatorKind.TXN, "g")) == Node(3, "h", 9)
    assert coordinators.cached_node(CoordinatorKind.TXN, "g") == Node(3, "h", 9)
    assert coordinators.cached_node(CoordinatorKind.GROUP, "g") is None
    assert asked == [{"key": "g", "key_type": 1, "coordinator_keys": ["g"]}]
    coordinators.forget(CoordinatorKind.TXN, "g")
    assert coordinators.cached_node(CoordinatorKind.TXN, "g") is None


def test_a_refusal_is_raised_with_the_brokers_words() -> None:
    coordinators, _ = asking(REFUSED)
    with pytest.raises(KafkaError, match="not you"):
        asyncio.run(coordinators.find(CoordinatorKind.GROUP, "g"))
