"""Which broker looks after a group or a transactional id.

Owns: the answers, until somebody finds one wrong. Never retries: `Cluster.coordinator` does.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol

from ottla.client.cluster_view import Node
from ottla.client.errors import refusal
from ottla.model.errors import ErrorCode

FIND_COORDINATOR: Final = 10


class CoordinatorKind(IntEnum):
    """What is looked after, with Kafka's numbers."""

    GROUP = 0
    TXN = 1


class FoundCoordinator(NamedTuple):
    error_code: ErrorCode
    error_message: str | None
    node: Node


class CoordinatorRequest(Protocol):
    async def __call__(self, key: int, fields: dict[str, Any]) -> Any: ...


class Coordinators:
    """The coordinators this client has learned of."""

    def __init__(self, ask: CoordinatorRequest) -> None:
        self._ask = ask
        self._known: dict[tuple[CoordinatorKind, str], Node] = {}

    def known(self, kind: CoordinatorKind, key: str) -> Node | None:
        return self._known.get((kind, key))

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        self._known.pop((kind, key), None)

    async def find(self, kind: CoordinatorKind, key: str) -> Node:
        """Ask who it is; KafkaError with the broker's reason."""
        fields = {"key": key, "key_type": int(kind), "coordinator_keys": [key]}
        found = _found(await self._ask(FIND_COORDINATOR, fields))
        if found.error_code:
            raise refusal(found.error_code, found.error_message)
        self._known[kind, key] = found.node
        return found.node


def _found(reply: Any) -> FoundCoordinator:
    told = reply.coordinators[0] if reply.coordinators else reply
    return FoundCoordinator(
        told.error_code, told.error_message, Node(told.node_id, told.host, told.port)
    )
