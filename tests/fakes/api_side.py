"""A broker's APIs over its data side, without sockets: real dispatch, real handlers, real logs.

`Caller` is one connection as `net` would hold it: replies come in the order they are given.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from ottla.api.api import Api
from ottla.api.dispatch import Dispatch
from ottla.api.services import BrokerContext, Services
from ottla.config.listeners import Listeners
from ottla.controller.controller import Controller
from ottla.coordinator.group.service import Groups
from ottla.coordinator.txn.service import Transactions
from ottla.model.ids import BrokerId
from ottla.net.request_slot import Peer, RequestSlot
from ottla.protocol import wire
from ottla.security.authorizer import Authorizer
from tests.fakes.data_side import ME, DataSide, data_side
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.shared_state import shared_state

_numbers = itertools.count(1)


class Caller:
    """A connection to a broker. `ended` is why it was closed, once it is."""

    def __init__(self, dispatch: Dispatch, listener: str = "PLAINTEXT") -> None:
        self.peer = Peer("10.0.0.9", 4711, listener, "PLAINTEXT")
        self.closed = False
        self.ended: str | None = None
        self.throttled_ms = 0  # the longest delay so far
        self.peer.answer = dispatch
        self._waiting: dict[RequestSlot, asyncio.Future[bytes]] = {}

    def send(self, frame: bytes | bytearray) -> asyncio.Future[bytes]:
        """Hand in a frame with its size; the future has the reply, empty if there is none."""
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        slot = RequestSlot(self, int.from_bytes(frame[4:6], "big"), 0, 0)
        self._waiting[slot] = reply
        self.peer.answer(memoryview(frame)[4:], slot)
        return reply

    def start(self, api: Api, version: int = -1, **fields: Any) -> asyncio.Future[bytes]:
        version = api.versions[version] if version < 0 else version
        return self.send(wire.encode_request(api.key, version, next(_numbers), "caller", fields))

    async def ask(self, api: Api, version: int = -1, **fields: Any) -> Any:
        """The decoded reply; the newest version unless another is named."""
        version = api.versions[version] if version < 0 else version
        reply = await self.start(api, version, **fields)
        assert self.ended is None, self.ended
        return wire.decode_reply(api.key, version, memoryview(reply)[4:])

    def on_reply(self, slot: RequestSlot) -> None:
        parts = [part if isinstance(part, bytes) else part.read() for part in _parts(slot)]
        waiting = self._waiting.pop(slot)
        if not waiting.done():
            waiting.set_result(b"".join(parts))

    def previous(self, slot: RequestSlot) -> RequestSlot | None:
        return None

    def end(self, reason: str) -> None:
        self.closed = True
        self.ended = reason

    def throttle(self, delay_ms: int) -> None:
        self.throttled_ms = max(self.throttled_ms, delay_ms)


def _parts(slot: RequestSlot) -> list[Any]:
    return [bytes(p) if isinstance(p, bytearray | memoryview) else p for p in slot.parts or ()]


class ApiSide:
    """The data side, and whoever calls it."""

    def __init__(self, data: DataSide, tasks: asyncio.TaskGroup) -> None:
        self.data = data
        self.services = Services(
            broker=BrokerContext(
                data.broker_id, "cluster", Listeners.of(data.config.current), data.clock
            ),
            config=data.config,
            authorizer=Authorizer(),
            metadata=data.metadata,
            controller=cast(Controller, None),
            shared=shared_state(data.store, data.config, data.broker_id),
            replicas=data.services,
            groups=cast(Groups, None),
            txns=cast(Transactions, None),
        )
        self.dispatch = Dispatch(self.services, tasks.create_task)
        self.caller = Caller(self.dispatch)

    def another(self, listener: str = "PLAINTEXT") -> Caller:
        return Caller(self.dispatch, listener)


@asynccontextmanager
async def api_side(
    settings: Mapping[str, str] | None = None,
    *,
    disk: ForgettingDisk | None = None,
    dirs: tuple[str, ...] = ("/data",),
    broker_id: BrokerId = ME,
) -> AsyncIterator[ApiSide]:
    async with (
        asyncio.TaskGroup() as tasks,
        data_side(settings, disk=disk, dirs=dirs, broker_id=broker_id) as data,
    ):
        yield ApiSide(data, tasks)
