"""One member of a classic group, and the replies to its join and sync.

Owns only data. A member that waits for a reply holds the function that sends it; answering moves
the function into the decision's effects, so that no request is answered twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.model.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.coordinator.group.draft import Draft


class GroupPhase(Enum):
    """By the names that Kafka's clients and tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MOVES: Final[Mapping[GroupPhase, frozenset[GroupPhase]]] = {
    GroupPhase.EMPTY: frozenset({GroupPhase.PREPARING, GroupPhase.DEAD}),
    GroupPhase.PREPARING: frozenset({GroupPhase.COMPLETING, GroupPhase.EMPTY, GroupPhase.DEAD}),
    GroupPhase.COMPLETING: frozenset({GroupPhase.STABLE, GroupPhase.PREPARING, GroupPhase.DEAD}),
    GroupPhase.STABLE: frozenset({GroupPhase.PREPARING, GroupPhase.DEAD}),
    GroupPhase.DEAD: frozenset({GroupPhase.DEAD}),
}

CAN_REBALANCE: Final = frozenset(
    phase for phase, moves in MOVES.items() if GroupPhase.PREPARING in moves
)


class Protocol(NamedTuple):
    """An assignment protocol that a member supports, with the member's metadata for it."""

    name: str
    metadata: bytes


class JoinedMember(NamedTuple):
    """A member as the leader's join reply lists it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinReply(NamedTuple):
    error: ErrorCode = ErrorCode.none
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class SyncReply(NamedTuple):
    error: ErrorCode = ErrorCode.none
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


JoinAnswer: TypeAlias = Callable[[JoinReply], None]
SyncAnswer: TypeAlias = Callable[[SyncReply], None]


@dataclass(slots=True)
class ClassicMember:
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    """Has not been in a generation yet: removed if it gets none within the new member limit."""
    awaits_join: JoinAnswer | None = None
    awaits_sync: SyncAnswer | None = None

    @property
    def waits(self) -> bool:
        return self.awaits_join is not None or self.awaits_sync is not None

    def metadata_for(self, protocol: str | None) -> bytes:
        for supported in self.protocols:
            if supported.name == protocol:
                return supported.metadata
        return b""

    def vote(self, candidates: frozenset[str]) -> str:
        """The first of its protocols that is a candidate."""
        for supported in self.protocols:
            if supported.name in candidates:
                return supported.name
        raise ValueError(f"member {self.id} supports none of the protocols {sorted(candidates)}")

    def answer_join(self, reply: JoinReply, draft: Draft) -> None:
        request, self.awaits_join = self.awaits_join, None
        draft.answer(request, reply)

    def answer_sync(self, reply: SyncReply, draft: Draft) -> None:
        request, self.awaits_sync = self.awaits_sync, None
        draft.answer(request, reply)

    def answer_waiting(self, code: ErrorCode, draft: Draft) -> None:
        """Answer whatever it waits for with this error."""
        self.answer_join(JoinReply(code, self.id), draft)
        self.answer_sync(SyncReply(code), draft)
