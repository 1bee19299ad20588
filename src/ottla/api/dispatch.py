"""From a frame to a reply: find the API, check version and permissions, call the handler, reply.

Owns the order of these steps for all requests. Never depends on a particular API.

Requests of one connection start in the order of arrival. A hot API runs at once, inside the call
that delivers the frame, and so does one that can be answered without a task (`Api.at_once`); any
other becomes a task. While a connection has tasks that have not started, even a hot request waits
behind them, with a copy of its frame. The memory of a large decoded request is counted until its
task has ended.

A request of more than `SMALL_VALUES` values always becomes a task, which yields to the event loop
between slices; later requests of its connection wait until it has been decoded, or, if it is hot,
finished. A large reply is encoded in slices, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from ottla.api import BY_KEY
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.api_versions import API as API_VERSIONS
from ottla.api.api_versions import unsupported_version
from ottla.api.authorise import acts_as_broker, check
from ottla.api.handling import LARGE_BYTES, handle
from ottla.api.services import Services
from ottla.api.throttling import TimedWork, is_exempt, throttle_forwarded, throttled
from ottla.controller.runtime.forwarding import ForwardedRequest
from ottla.delay.slices import arrays_of, finished, free
from ottla.model.errors import Disconnect, ErrorCode, KafkaError
from ottla.net.admission import Admission
from ottla.net.request_slot import Peer, RequestSlot
from ottla.protocol import wire
from ottla.protocol.length_check import TooManyValues
from ottla.protocol.wire import Call

log = logging.getLogger(__name__)

SMALL_VALUES: Final = 2_000
"""Array elements of a request that is decoded on arrival: a fifth of a millisecond."""

Spawn: TypeAlias = Callable[[Coroutine[object, None, None]], object]
"""Starts a task; None or False if the broker is stopping."""
FORWARDED_MS: Final = 30_000
"""How long a forwarded request without a timeout of its own may take."""
COUNTED_FROM_BYTES: Final = 8 << 10
"""Smaller requests are bounded by their number (`max.inflight.requests.per.connection`) only."""


class Dispatch:
    """The request handler of every listener, and of the controller's link to its own broker."""

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
            call = wire.parse_call(frame)
            api = self._apis.get(call.key)
            if api is None or call.version not in api.versions:
                _reject_version(api, call, slot)
                return
            peer.versions[call.key] = call.version
            self._begin(api, call, frame, slot)
        except Disconnect as error:
            slot.close(str(error))
        except Exception:
            _close_failed(slot)

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
                    whole = bytes(frame) if self._is_forwarded(api) else b""
                    work = self._answer(api, call, request, slot, whole)
                    self._later(call, slot, work, len(frame))
            elif peer.unstarted:
                self._later(call, slot, self._take_turn(api, call, bytes(frame), slot), len(frame))
            else:
                api.raw(call, frame, slot, self._services)
        except TooManyValues:
            self._later(call, slot, self._take_turn(api, call, bytes(frame), slot), len(frame))

    def _at_once(self, api: Api, call: Call, request: Request, slot: RequestSlot) -> bool:
        """Reply without a task if possible; whether it was."""
        assert api.at_once is not None
        assert api.refuse is not None

        def done(fields: Fields) -> None:
            fields = throttled(api, call, slot, self._services, fields)
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

    def _later(
        self, call: Call, slot: RequestSlot, work: Coroutine[object, None, None], size: int
    ) -> None:
        memory = self._memory
        if self._services.shared.quotas.in_force and not is_exempt(self._apis[call.key], slot.peer):
            work = TimedWork(work, call, slot, self._services)
        if size < COUNTED_FROM_BYTES:
            started = self._spawn(work)
        elif memory.is_exhausted and not acts_as_broker(slot.peer, self._services):
            work.close()
            slot.close(
                f"no memory for a request of {size} bytes: requests in progress use "
                f"{memory.used} of {memory.limit} bytes (queued.max.request.bytes)"
            )
            return
        else:
            memory.take(size)
            started = self._spawn(self._counted(work, size))
        slot.peer.unstarted += 1
        if not started:
            work.close()
            slot.close("broker is shutting down")

    async def _counted(self, work: Coroutine[object, None, None], size: int) -> None:
        try:
            await work
        finally:
            self._memory.give_back(size)

    async def _take_turn(self, api: Api, call: Call, frame: bytes, slot: RequestSlot) -> None:
        """A large request, or a hot one that waits behind others."""
        try:
            async with _turn(slot.peer):
                view = memoryview(frame)
                request = await self._large(api, call, view, slot)
        except Disconnect as error:
            slot.close(str(error))
        except Exception:
            _close_failed(slot)
        else:
            if api.raw is None:
                await self._reply(api, call, request, slot, frame)

    async def _large(self, api: Api, call: Call, frame: memoryview, slot: RequestSlot) -> Request:
        """Decode the request, or, if it is hot, handle it."""
        if api.raw is None:
            await finished(wire.check_request(call, frame))
            await asyncio.sleep(0)
            request = wire.read_request(call, frame)
            await asyncio.sleep(0)
            return request
        try:
            api.raw(call, frame, slot, self._services)
        except TooManyValues:
            assert api.large is not None
            await api.large(call, frame, slot, self._services)
        return None

    async def _answer(
        self, api: Api, call: Call, request: Request, slot: RequestSlot, frame: bytes
    ) -> None:
        peer = slot.peer
        while peer.large is not None:
            await peer.large.wait()
        peer.started()
        await self._reply(api, call, request, slot, frame)

    async def _reply(
        self, api: Api, call: Call, request: Request, slot: RequestSlot, frame: bytes
    ) -> None:
        """Never raises: a failing task would stop the whole broker.

        `frame`: of a large request, or one to be forwarded.
        """
        if frame and self._is_forwarded(api):
            await self._forward(api, call, request, frame, slot)
            return
        try:
            is_large = len(frame) > LARGE_BYTES
            ctx = Context(call, slot.peer, self._services, is_large, slot.wait_for_turn)
            fields = await handle(api, request, ctx)
            fields = throttled(api, call, slot, self._services, fields)
            if wire.reply_is_large(call, fields):
                await asyncio.sleep(0)
                slot.reply([await finished(wire.reply_in_pieces(call, fields))])
                arrays = await arrays_of(fields)
                del fields
                await free(arrays)
            else:
                slot.reply([wire.reply(call, fields)])
        except Disconnect as error:
            slot.close(str(error))
        except Exception:
            _close_failed(slot)

    def _is_forwarded(self, api: Api) -> bool:
        controller = self._services.controller
        return (
            api.needs_controller and controller.forwarder is not None and not controller.is_active
        )

    async def _forward(
        self, api: Api, call: Call, request: Request, frame: bytes, slot: RequestSlot
    ) -> None:
        """Pass the request on to the active controller, and its reply on to the client."""
        forwarder = self._services.controller.forwarder
        assert forwarder is not None
        assert api.refuse is not None
        peer = slot.peer
        timeout = getattr(request, "timeout", None)
        timeout_ms = FORWARDED_MS if timeout is None else wire.ms(timeout)
        try:
            reply = await forwarder.forward(
                ForwardedRequest(frame, peer.principal, peer.address), timeout_ms
            )
            if self._services.shared.quotas.in_force:
                throttle_forwarded(call, reply, slot)
            slot.reply([len(reply).to_bytes(4, "big") + reply])
        except KafkaError as refusal:
            slot.reply([wire.reply(call, api.refuse(request, refusal.code, refusal.message))])
        except Exception:
            _close_failed(slot)


@asynccontextmanager
async def _turn(peer: Peer) -> AsyncIterator[None]:
    """Wait for the large request of the peer, if any; then later ones wait for this one.

    Tasks of one connection start in the order they were created, and events wake their waiters in
    order: no request overtakes another.
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


def _reject_version(api: Api | None, call: Call, slot: RequestSlot) -> None:
    """Reply to ApiVersions in version 0; close the connection for any other API."""
    if api is API_VERSIONS:
        slot.reply([unsupported_version(call)])
        return
    name = f"api key {call.key}" if api is None else api.name
    slot.close(f"unsupported version {call.version} of {name}")


def _close_failed(slot: RequestSlot) -> None:
    """Handling failed with an unexpected error: log it and close the connection."""
    log.exception("request failed with an unexpected error; closing the connection")
    if slot.parts is None:
        slot.close("internal error while handling the request; see the broker log")
