"""The coordinator of a group or a transactional id.

Owns: the cache, until a caller reports an entry as wrong. Never retries; `Cluster` does.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from ottla.client.cluster_view import Node
from ottla.client.errors import refusal
from ottla.model.errors import ErrorCode
from ottla.protocol.schema import KioMessage

FIND_COORDINATOR: Final = 10


class CoordinatorKind(IntEnum):
    """The key types of FindCoordinator, with Kafka's numbers."""

    GROUP = 0
    TXN = 1


class FoundCoordinator(NamedTuple):
    error_code: ErrorCode
    error_message: str | None
    node: Node


class CoordinatorRequest(Protocol):
    async def __call__(self, key: int, fields: dict[str, object]) -> KioMessage: ...


class Coordinators:
    """The coordinators that this client has looked up."""

    def __init__(self, ask: CoordinatorRequest) -> None:
        self._ask = ask
        self._nodes: dict[tuple[CoordinatorKind, str], Node] = {}

    def cached_node(self, kind: CoordinatorKind, key: str) -> Node | None:
        return self._nodes.get((kind, key))

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        self._nodes.pop((kind, key), None)

    async def find(self, kind: CoordinatorKind, key: str) -> Node:
        """Look it up; KafkaError with the broker's reason."""
        fields = {"key": key, "key_type": int(kind), "coordinator_keys": [key]}
        result = _parse_response(await self._ask(FIND_COORDINATOR, fields))
        if result.error_code:
            raise refusal(result.error_code, result.error_message)
        self._nodes[kind, key] = result.node
        return result.node


def _parse_response(response: KioMessage) -> FoundCoordinator:
    row = response.coordinators[0] if response.coordinators else response
    return FoundCoordinator(
        row.error_code, row.error_message, Node(row.node_id, row.host, row.port)
    )
