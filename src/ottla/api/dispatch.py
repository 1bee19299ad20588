"""From a frame to a reply: which API, which version, who may, who answers, how a refusal is said.

Owns the order of these steps for every request alike. Never knows what any API means.

Requests of one connection start in the order they came. A hot API runs at once, inside the call
that delivers the frame, or quicker still where the peer repeats itself (`Peer.express`), and so
does one that can be answered without a task (`Api.at_once`); any other becomes a task. While a
connection has tasks that have not begun, even a hot request takes its turn behind them, with a copy
of its frame. What a large request was decoded to is counted as memory until its task has ended.

A request of more than `SMALL_VALUES` values always becomes a task, which gives the loop a turn
between its pieces; the requests behind it on its connection wait until it has been decoded, or, if
it is hot, done. A large reply is encoded in pieces, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from ottla.api import BY_KEY
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.api_versions import API as API_VERSIONS
from ottla.api.api_versions import unsupported_version
from ottla.api.authorise import check
from ottla.api.services import Services
from ottla.delay.slices import finished
from ottla.model.errors import Disconnect, ErrorCode, KafkaError
from ottla.net.admission import Admission
from ottla.net.request_slot import Peer, RequestSlot
from ottla.protocol import wire
from ottla.protocol.length_check import TooManyValues
from ottla.protocol.wire import Call
from ottla.store.port import SessionExpired, StoreUnavailable

log = logging.getLogger(__name__)

SMALL_VALUES: Final = 2_000
"""In the arrays of a request that is decoded where it arrives: a fifth of a millisecond."""

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]
"""Starts a task; nothing, or False, when none can be started any more."""
COUNTED_FROM_BYTES: Final = 8 << 10
"""Smaller requests are bounded by their number alone (`max.inflight.requests.per.connection`)."""


class Dispatch:
    """The `Answer` of every listener, and of the controller's link to its own broker."""

    def __init__(
        self,
        services: Services,
        spawn: Spawn,
        apis: Mapping[int, Api] = BY_KEY,
        memory: Admission | None = None,
    ) -> None:
        self._services = services
        self._spawn = spawn
        self._apis = apis
        self._memory = memory or Admission()

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        peer = slot.peer
        try:
            if peer.express is not None and not peer.unstarted and peer.express(frame, slot):
                return
            call = wire.parse_call(frame)
            api = self._apis.get(call.key)
            if api is None or call.version not in api.versions:
                _not_offered(api, call, slot)
                return
            peer.versions[call.key] = call.version
            self._begin(api, call, frame, slot)
        except Disconnect as broken:
            slot.close(str(broken))
        except Exception:
            _broken(slot)

    def _begin(self, api: Api, call: Call, frame: memoryview, slot: RequestSlot) -> None:
        peer = slot.peer
        try:
            if api.raw is None:
                request = wire.decode(call, frame, SMALL_VALUES)
                if (
                    api.at_once is None
                    or peer.unstarted
                    or not self._at_once(api, call, request, slot)
                ):
                    self._later(slot, self._answer(api, call, request, slot), len(frame))
            elif peer.unstarted:
                self._later(slot, self._take_turn(api, call, bytes(frame), slot), len(frame))
            else:
                api.raw(call, frame, slot, self._services)
        except TooManyValues:
            self._later(slot, self._take_turn(api, call, bytes(frame), slot), len(frame))

    def _at_once(self, api: Api, call: Call, request: Request, slot: RequestSlot) -> bool:
        """Answer without a task, if that can be done here and now; whether it is."""
        assert api.at_once is not None
        assert api.refuse is not None

        def done(fields: Fields) -> None:
            slot.reply((wire.reply(call, fields),))

        try:
            check(self._services.authorizer, slot.peer, api.needs, request)
            return api.at_once(request, Context(call, slot.peer, self._services), done)
        except KafkaError as refusal:
            done(api.refuse(request, refusal.code, refusal.message))
        except Disconnect:
            raise
        except Exception:
            log.exception("%s v%d failed", api.name, call.version)
            done(api.refuse(request, ErrorCode.unknown_server_error, None))
        return True

    def _later(self, slot: RequestSlot, work: Coroutine[Any, Any, None], size: int) -> None:
        memory = self._memory
        if size < COUNTED_FROM_BYTES:
            begun = self._spawn(work)
        elif memory.is_exhausted and not slot.peer.is_broker:
            work.close()
            slot.close(
                f"there is no memory for a request of {size} bytes: those in progress have "
                f"{memory.used} already (queued.max.request.bytes is {memory.limit})"
            )
            return
        else:
            memory.take(size)
            begun = self._spawn(self._counted(work, size))
        slot.peer.unstarted += 1
        if not begun:
            work.close()
            slot.close("the broker ends")

    async def _counted(self, work: Coroutine[Any, Any, None], size: int) -> None:
        try:
            await work
        finally:
            self._memory.give_back(size)

    async def _take_turn(self, api: Api, call: Call, frame: bytes, slot: RequestSlot) -> None:
        """A request that is large, or hot and not the first that waits."""
        try:
            async with _turn(slot.peer):
                view = memoryview(frame)
                request = await self._large(api, call, view, slot)
        except Disconnect as broken:
            slot.close(str(broken))
        except Exception:
            _broken(slot)
        else:
            if api.raw is None:
                await self._reply(api, call, request, slot)

    async def _large(self, api: Api, call: Call, frame: memoryview, slot: RequestSlot) -> Request:
        """Decode, or, if it is hot, do all of it."""
        if api.raw is None:
            wire.check_request(call, frame)
            await asyncio.sleep(0)
            return wire.read_request(call, frame)
        try:
            api.raw(call, frame, slot, self._services)
        except TooManyValues:
            assert api.large is not None
            await api.large(call, frame, slot, self._services)
        return None

    async def _answer(self, api: Api, call: Call, request: Request, slot: RequestSlot) -> None:
        peer = slot.peer
        while peer.large is not None:
            await peer.large.wait()
        peer.started()
        await self._reply(api, call, request, slot)

    async def _reply(self, api: Api, call: Call, request: Request, slot: RequestSlot) -> None:
        """Never raises: a task that fails would take the whole broker with it."""
        try:
            fields = await self._fields(api, call, request, slot)
            if wire.is_large(fields):
                slot.reply([await finished(wire.reply_in_pieces(call, fields))])
            else:
                slot.reply([wire.reply(call, fields)])
        except Disconnect as broken:
            slot.close(str(broken))
        except Exception:
            _broken(slot)

    async def _fields(self, api: Api, call: Call, request: Request, slot: RequestSlot) -> Fields:
        assert api.handler is not None
        assert api.refuse is not None
        try:
            if api.between_brokers and not slot.peer.is_broker:
                raise KafkaError(ErrorCode.cluster_authorization_failed)
            check(self._services.authorizer, slot.peer, api.needs, request)
            return await api.handler(request, Context(call, slot.peer, self._services))
        except KafkaError as refusal:
            return api.refuse(request, refusal.code, refusal.message)
        except Disconnect:
            raise
        except (StoreUnavailable, SessionExpired) as gone:
            log.warning("%s v%d: the metadata cannot be reached: %s", api.name, call.version, gone)
            return api.refuse(request, ErrorCode.request_timed_out, "No word from the metadata.")
        except Exception:
            log.exception("%s v%d failed", api.name, call.version)
            return api.refuse(request, ErrorCode.unknown_server_error, None)


@asynccontextmanager
async def _turn(peer: Peer) -> AsyncIterator[None]:
    """Wait until no other request of the peer must be waited for; then others wait for this one.

    Tasks of one connection begin in the order they were made, and events wake in the order in
    which they are waited for: nobody overtakes.
    """
    while peer.large is not None:
        await peer.large.wait()
    peer.large = asyncio.Event()
    try:
        yield
    finally:
        peer.large.set()
        peer.large = None
        peer.started()


def _not_offered(api: Api | None, call: Call, slot: RequestSlot) -> None:
    """An unknown version of ApiVersions is answered in version 0; anything else cannot be read."""
    if api is API_VERSIONS:
        slot.reply([unsupported_version(call)])
        return
    name = f"api key {call.key}" if api is None else api.name
    slot.close(f"{name} version {call.version} is not offered here")


def _broken(slot: RequestSlot) -> None:
    """A handler failed in a way nobody foresaw: the state is logged, the connection ends."""
    log.exception("a request could not be answered")
    if slot.parts is None:
        slot.close("the request could not be answered")
