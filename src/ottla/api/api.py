"""The declaration of an API: one per file of this folder, at its end.

Owns the form of a declaration and what a handler can access. Never refers to a particular API:
`api/__init__.py` lists them, `dispatch.py` calls them.

A handler turns a decoded request into calls and their results into the fields of a reply; a
`KafkaError` that it raises is turned into a reply by `refuse`. The two hot APIs, Produce and Fetch,
take the frame and the slot themselves: their record sets are views into the receive buffer, valid
only during the call, and their replies contain slices of files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.api.authorise import Need, require
from ottla.model.errors import ErrorCode
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Call
from ottla.security.acl import Kind, Operation

if TYPE_CHECKING:
    from ottla.api.services import Services
    from ottla.net.request_slot import Peer, RequestSlot

Fields: TypeAlias = Mapping[str, object]
NOT_HOSTED: Final = "This server does not host this topic-partition."
"""What Kafka says of UNKNOWN_TOPIC_OR_PARTITION where a reply has room for a message."""
Request: TypeAlias = KioMessage
"""A kio entity of the negotiated version; a field that the version lacks has its default."""


async def _no_turn() -> None:
    """Of a request that came alone: there is nothing to wait for."""


@dataclass(frozen=True, slots=True)
class Context:
    """The call, the peer that sent it, and the services of this broker."""

    call: Call
    peer: Peer
    services: Services
    is_large: bool = False
    """Whether the request may have very many items."""
    wait_for_turn: Callable[[], Awaitable[None]] = _no_turn
    """Waits until the replies to earlier requests of the peer have left."""

    def allows(self, operation: Operation, kind: Kind, name: str, *, noted: bool = True) -> bool:
        """Whether the peer may do this; `noted` is False where a denial refuses nothing."""
        return self.services.authorizer.allows(self.peer, operation, kind, name, log_denial=noted)

    def require(self, operation: Operation, kind: Kind, name: str) -> None:
        """KafkaError for the whole request if the peer may not do this."""
        require(self.services.authorizer, self.peer, operation, kind, name)


Handler: TypeAlias = Callable[[Request, Context], Awaitable[Fields]]
AtOnce: TypeAlias = Callable[[Request, Context, Callable[[Fields], None]], bool]
"""Replies without a task, by calling its last argument now or later; False: use the handler."""
RawHandler: TypeAlias = "Callable[[Call, memoryview, RequestSlot, Services], None]"
LargeHandler: TypeAlias = "Callable[[Call, memoryview, RequestSlot, Services], Awaitable[None]]"
"""The same, in slices, for requests on which a raw handler raises TooManyValues. The frame stays
valid; when it returns, later requests of the connection may start."""
Refuse: TypeAlias = Callable[[Request, ErrorCode, str | None], Fields]


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its key, the versions served, and its handler.

    `advertised_from` is for Produce only, which must be advertised from version 0 and refuses 0-2.
    `between_brokers` marks APIs that only brokers may call, `needs_controller` those that only the
    active controller can answer: another broker forwards them. `needs` are the operations that the
    peer needs for the whole request; permissions of single items are checked by the handler.
    """

    key: int
    name: str
    versions: range
    handler: Handler | None = None
    refuse: Refuse | None = None
    raw: RawHandler | None = None
    large: LargeHandler | None = None
    at_once: AtOnce | None = None
    advertised_from: int | None = None
    between_brokers: bool = False
    needs_controller: bool = False
    needs: tuple[Need, ...] = ()

    def __post_init__(self) -> None:
        assert (self.raw is None) != (self.handler is None), self.name
        assert (self.handler is None) == (self.refuse is None), self.name
        assert self.at_once is None or (self.handler and not self.between_brokers), self.name
        assert self.raw is None or not (self.needs or self.needs_controller), self.name
        assert (self.raw is None) == (self.large is None), self.name

    @property
    def oldest_advertised(self) -> int:
        return self.versions.start if self.advertised_from is None else self.advertised_from


def error_code(_: Request, code: ErrorCode, message: str | None) -> Fields:
    """The `refuse` of an API whose reply has one error at its top level."""
    return {"error_code": code, "error_message": message}
