"""What an API is: one declaration per file of this folder, at its bottom.

Owns the shape of a declaration and what a handler may see of its surroundings. Never looks at a
particular API: `api/__init__.py` lists them, `dispatch.py` calls them.

A handler turns a decoded request into calls and their results into the fields of a reply; what it
raises as `KafkaError` is said by `refuse`. The two hot APIs, Produce and Fetch, take the frame and
the slot themselves: their record sets are views into the receive buffer, valid only during the
call, and their replies carry files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.api.authorise import Need, require
from ottla.model.errors import ErrorCode
from ottla.protocol.wire import Call
from ottla.security.acl import Kind, Operation

if TYPE_CHECKING:
    from ottla.api.services import Services
    from ottla.net.request_slot import Peer, RequestSlot

Fields: TypeAlias = Mapping[str, object]
Request: TypeAlias = Any
"""A kio entity of the negotiated version; a field it lacks reads as its default."""


@dataclass(frozen=True, slots=True)
class Context:
    """Who asks, in which version, and what there is to ask of."""

    call: Call
    peer: Peer
    services: Services

    def allows(self, operation: Operation, kind: Kind, name: str, *, noted: bool = True) -> bool:
        """Whether who asks may do this; `noted` is False where nothing is refused by the answer."""
        return self.services.authorizer.allows(self.peer, operation, kind, name, log_denial=noted)

    def require(self, operation: Operation, kind: Kind, name: str) -> None:
        """Refuse the whole request if they may not."""
        require(self.services.authorizer, self.peer, operation, kind, name)


Handler: TypeAlias = Callable[[Request, Context], Awaitable[Fields]]
AtOnce: TypeAlias = Callable[[Request, Context, Callable[[Fields], None]], bool]
"""Answers without a task, by calling its last argument now or later; False: the handler must."""
RawHandler: TypeAlias = "Callable[[Call, memoryview, RequestSlot, Services], None]"
LargeHandler: TypeAlias = "Callable[[Call, memoryview, RequestSlot, Services], Awaitable[None]]"
"""The same for requests that a raw handler leaves with TooManyValues, in slices. The frame stays;
whatever order matters in is done when it returns."""
Refuse: TypeAlias = Callable[[Request, ErrorCode, str | None], Fields]


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its key, the versions served, and who answers.

    `advertised_from` is for Produce alone, which must be offered from version 0 and refuses 0-2.
    `between_brokers` marks what only another broker may ask. `needs` is what whoever asks must be
    allowed for the whole request; what is allowed item by item the handler asks for.
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
    needs: tuple[Need, ...] = ()

    def __post_init__(self) -> None:
        assert (self.raw is None) != (self.handler is None), self.name
        assert (self.handler is None) == (self.refuse is None), self.name
        assert self.at_once is None or (self.handler and not self.between_brokers), self.name
        assert self.raw is None or not self.needs, self.name
        assert (self.raw is None) == (self.large is None), self.name

    @property
    def oldest_advertised(self) -> int:
        return self.versions.start if self.advertised_from is None else self.advertised_from


def error_code(_: Request, code: ErrorCode, message: str | None) -> Fields:
    """The refusal of an API whose reply has one error at its top."""
    return {"error_code": code, "error_message": message}
