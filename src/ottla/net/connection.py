"""One connection without its socket: frames in order, replies in order, how many at a time.

Owns: the slots of requests that are not answered yet, and the replies whose turn has come.
Never: touches a socket or the event loop; the clock and the handler of frames are handed in, and
a handler may install another one (`Peer.answer`).

Requests start in the order they came. Replies leave in that order too, whatever order they are
ready in. At most `inflight_max` are unanswered, and only a few of them may wait for a handler to
begin: a connection at one of these bounds is muted, it starts no further request until a reply has
left its slot, or a handler has begun. So is one with too many bytes of replies that wait for the
reply to an earlier request, and one whose client exceeded a quota. A fault of the peer ends the
connection after the replies that were ready before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from ottla.model.clock import Clock
from ottla.model.errors import Disconnect
from ottla.net.frame_reader import FrameReader
from ottla.net.limits import (
    REQUESTS_PER_TURN,
    UNSENT_PAUSE_BYTES,
    UNSENT_STEP_BYTES,
    UNSTARTED_MAX,
    NetLimits,
)
from ottla.net.request_slot import BYTES, NO_BYTES, Answer, Peer, RequestSlot

log = logging.getLogger(__name__)


class Login(Protocol):
    """Answers requests until the client is authenticated, and watches the session afterwards."""

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None: ...

    def sweep(self, now_ns: int) -> None: ...


class Connection:
    """The order of one peer's requests and replies."""

    __slots__ = (
        "_answering",
        "_clock",
        "_inflight_limit",
        "_login_max_bytes",
        "_reported_bytes",
        "_request_max_bytes",
        "closed",
        "draining",
        "ending",
        "inflight",
        "inflight_max",
        "is_login",
        "login",
        "on_throttled",
        "on_waiting_bytes",
        "peer",
        "reader",
        "ready",
        "throttled_until_ns",
        "waiting_bytes",
        "wake",
    )

    def __init__(self, peer: Peer, reader: FrameReader, answer: Answer, clock: Clock) -> None:
        self.peer = peer
        self.reader = reader
        self.inflight: list[RequestSlot] = []
        self.inflight_max = 0
        self._inflight_limit = 0  # what it is when nothing else holds it back
        self._request_max_bytes = self._login_max_bytes = reader.max_bytes
        self.waiting_bytes = 0  # of replies behind one that is not ready
        self._reported_bytes = 0  # the value last reported
        self.on_waiting_bytes: Callable[[], None] = _ignore  # `waiting_bytes` has changed
        self.ending: str | None = None  # why no further request is started
        self.draining = False
        self.throttled_until_ns = 0  # starts no request before; 0: it is not throttled
        self.on_throttled: Callable[[int], None] = _ignore_delay
        self.closed = False
        self.wake: Callable[[], None] = _ignore  # something happened outside a turn
        self.login: Login | None = None
        self.is_login = False  # only one request at a time, and only small ones
        self._clock = clock
        self.ready: list[RequestSlot] = []  # answered, and every one before them too
        self._answering: RequestSlot | None = None
        peer.on_room = self._on_room
        peer.answer = answer

    @property
    def muted(self) -> bool:
        return len(self.inflight) >= self.inflight_max or self.peer.unstarted >= UNSTARTED_MAX

    def apply(self, limits: NetLimits) -> None:
        """Put these bounds in force, unless it is draining."""
        self._request_max_bytes = limits.socket_request_max_bytes
        self._login_max_bytes = limits.sasl_server_max_receive_size
        self._inflight_limit = limits.max_inflight_requests_per_connection
        self._set_request_max()
        self._set_max()

    def begin_login(self, login: Login) -> None:
        """From now on `login` answers, one small request at a time."""
        self.login = login
        self.is_login = True
        self.peer.answer = login
        self._set_request_max()
        self._set_max()

    def answer_with(self, answer: Answer, *, is_login: bool = False) -> None:
        """Who answers from the next turn on: the client is authenticated, or its session over."""
        self.is_login = is_login
        self.peer.answer = answer
        self._set_request_max()
        self._set_max()

    def drain(self) -> None:
        """Start nothing more, whatever the bounds say."""
        self.draining = True
        self._set_max()

    def _set_max(self) -> None:
        holds = self.draining or self.waiting_bytes > UNSENT_PAUSE_BYTES or self.throttled_until_ns
        limit = 1 if self.is_login else self._inflight_limit
        self.inflight_max = 0 if holds else limit

    def _set_request_max(self) -> None:
        largest = self._request_max_bytes
        self.reader.max_bytes = min(largest, self._login_max_bytes) if self.is_login else largest

    def throttle(self, delay_ms: int) -> None:
        """Start no request until this time has passed: the client exceeded a quota."""
        until_ns = self._clock.mono_ns() + delay_ms * 1_000_000
        if until_ns > self.throttled_until_ns and not self.closed:
            self.throttled_until_ns = until_ns
            self._set_max()
            self.on_throttled(delay_ms)

    def end_throttling(self) -> None:
        self.throttled_until_ns = 0
        self._set_max()

    def turn(
        self, received_ns: int, started_ns: int, limit: int = REQUESTS_PER_TURN
    ) -> tuple[int, int]:
        """Answer up to `limit` requests that have arrived: how many it was, and the time now.

        Hot: benchmarks/net.py.
        """
        requests_left = limit
        reader, mono_ns = self.reader, self._clock.mono_ns
        inflight, peer = self.inflight, self.peer
        try:
            while requests_left and len(inflight) < self.inflight_max and self.ending is None:
                if peer.unstarted >= UNSTARTED_MAX:
                    break
                frame = reader.next_frame()
                if frame is None:
                    break
                requests_left -= 1
                slot = RequestSlot(self, reader.api, received_ns, started_ns)
                self._answering = slot
                peer.answer(frame, slot)
                frame.release()  # nobody may look at it later: the memory is read into again
                slot.local_ns = started_ns = mono_ns()
                if slot.parts is None:
                    inflight.append(slot)
                elif inflight:
                    slot.done_ns = started_ns
                    inflight.append(slot)
                    self._count_waiting(slot)
                else:
                    slot.done_ns = started_ns
                    self.ready.append(slot)
        except Disconnect as refusal:
            self.end(str(refusal))
        except Exception as error:
            log.exception("failed to handle a request from %s on listener %s", peer, peer.listener)
            self.end(f"internal error while handling a request: {type(error).__name__}")
        self._answering = None
        return limit - requests_left, started_ns

    def take(self) -> list[RequestSlot]:
        """The answered slots whose turn has come, in order; they are the caller's now."""
        ready, self.ready = self.ready, []
        return ready

    def on_reply(self, slot: RequestSlot) -> None:
        """A slot has got its answer, in the call that started it or any time later."""
        if slot is self._answering:
            return  # `turn` puts it in its place
        if self.closed:
            slot.parts = NO_BYTES  # lets go of the files it would have sent
            return
        slot.done_ns = self._clock.mono_ns()
        inflight = self.inflight
        if not inflight:
            return  # it was answered late, after a fault had ended the connection
        if inflight[0].parts is None:
            self._count_waiting(slot)
            return
        self.ready.append(inflight.pop(0))
        if inflight and inflight[0].parts is not None:
            while inflight and inflight[0].parts is not None:
                self.ready.append(inflight.pop(0))
            self._count_again()
        if self._answering is None:
            self.wake()

    def previous(self, slot: RequestSlot) -> RequestSlot | None:
        """The request before this one, if its reply has not left."""
        inflight = self.inflight
        position = inflight.index(slot) if slot in inflight else 0
        return inflight[position - 1] if position else None

    def _count_waiting(self, slot: RequestSlot) -> None:
        """Its reply is ready, and waits for the one to an earlier request."""
        self.waiting_bytes += _memory_of(slot)
        self._waiting_changed()

    def _count_again(self) -> None:
        self.waiting_bytes = sum(map(_memory_of, self.inflight))
        self._waiting_changed()

    def _waiting_changed(self) -> None:
        self._set_max()
        if abs(self.waiting_bytes - self._reported_bytes) > UNSENT_STEP_BYTES:
            self._reported_bytes = self.waiting_bytes
            self.on_waiting_bytes()

    def _on_room(self) -> None:
        """Handlers have begun: the requests behind them may be started."""
        if self._answering is None and not self.closed:
            self.wake()

    def end(self, reason: str) -> None:
        """Start no further request; the first reason is the one that is logged."""
        if self.ending is not None or self.closed:
            return
        self.ending = reason
        if self._answering is None:
            self.wake()

    def close(self) -> None:
        """The peer is gone: what is unanswered or unsent is dropped."""
        self.closed = True
        self.wake = _ignore
        for slot in self.inflight:
            if slot.parts is not None:
                slot.parts = NO_BYTES
            elif slot.on_disconnect is not None:
                slot.on_disconnect()
        self.inflight.clear()
        self.ready.clear()
        self.waiting_bytes = 0
        self.reader.close()


def _memory_of(slot: RequestSlot) -> int:
    """Bytes of an answer that are in memory; those of files are not."""
    return sum(len(part) for part in slot.parts or () if isinstance(part, BYTES))


def _ignore() -> None:
    """The callback until a channel sets its own."""


def _ignore_delay(_: int) -> None:
    """The same, for a callback with a delay."""
