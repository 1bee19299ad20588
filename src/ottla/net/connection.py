"""One connection without its socket: frames in order, replies in order, how many at a time.

Owns: the slots of requests that are not answered yet, and the replies whose turn has come.
Never: touches a socket or the event loop; the clock and the answering function are handed in.

Requests start in the order they came. Replies leave in that order too, whatever order they are
ready in. At most `inflight_max` are unanswered, and only a few of them may wait for a handler to
begin: a connection at one of these bounds is muted, it starts no further request until a reply has
left its slot, or a handler has begun. A fault of the peer ends the connection after the
replies that were ready before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.model.clock import Clock
from ottla.model.errors import Disconnect
from ottla.net.inbox import Inbox
from ottla.net.limits import REQUESTS_PER_TURN, UNSTARTED_MAX, NetLimits
from ottla.net.slot import NO_BYTES, Answer, Peer, Slot

log = logging.getLogger(__name__)


class Connection:
    """The order of one peer's requests and replies."""

    __slots__ = (
        "_answer",
        "_answering",
        "_clock",
        "closed",
        "ending",
        "inbox",
        "inflight",
        "inflight_max",
        "peer",
        "ready",
        "retired",
        "wake",
    )

    def __init__(self, peer: Peer, inbox: Inbox, answer: Answer, clock: Clock) -> None:
        self.peer = peer
        self.inbox = inbox
        self.inflight: list[Slot] = []
        self.inflight_max = 0
        self.ending: str | None = None  # why no further request is started
        self.retired = False
        self.closed = False
        self.wake: Callable[[], None] = _nobody  # something happened outside a turn
        self._answer = answer
        self._clock = clock
        self.ready: list[Slot] = []  # answered, and every one before them too
        self._answering: Slot | None = None
        peer.on_room = self._has_room

    @property
    def muted(self) -> bool:
        return len(self.inflight) >= self.inflight_max or self.peer.unstarted >= UNSTARTED_MAX

    def apply(self, limits: NetLimits) -> None:
        """Put these bounds in force, unless it is retired."""
        self.inbox.max_bytes = limits.socket_request_max_bytes
        if not self.retired:
            self.inflight_max = limits.max_inflight_requests_per_connection

    def retire(self) -> None:
        """Start nothing more, whatever the bounds say."""
        self.retired = True
        self.inflight_max = 0

    def turn(
        self, received_ns: int, started_ns: int, limit: int = REQUESTS_PER_TURN
    ) -> tuple[int, int]:
        """Answer up to `limit` requests that have arrived: how many it was, and the time now.

        Hot: benchmarks/net.py.
        """
        left = limit
        inbox, answer, mono_ns = self.inbox, self._answer, self._clock.mono_ns
        inflight, peer = self.inflight, self.peer
        try:
            while left and len(inflight) < self.inflight_max and self.ending is None:
                if peer.unstarted >= UNSTARTED_MAX:
                    break
                frame = inbox.next_frame()
                if frame is None:
                    break
                left -= 1
                slot = Slot(self, inbox.api, received_ns, started_ns)
                self._answering = slot
                answer(frame, slot)
                frame.release()  # nobody may look at it later: the memory is read into again
                slot.local_ns = started_ns = mono_ns()
                if slot.parts is None:
                    inflight.append(slot)
                else:
                    slot.done_ns = started_ns
                    (inflight or self.ready).append(slot)
        except Disconnect as refusal:
            self.end(str(refusal))
        except Exception as error:
            log.exception("a request from %s failed", self.peer)
            self.end(f"{type(error).__name__} while answering")
        self._answering = None
        return limit - left, started_ns

    def take(self) -> list[Slot]:
        """The answered slots whose turn has come, in order; they are the caller's now."""
        ready, self.ready = self.ready, []
        return ready

    def replied(self, slot: Slot) -> None:
        """A slot has got its answer, in the call that started it or any time later."""
        if slot is self._answering:
            return  # `turn` puts it in its place
        if self.closed:
            slot.parts = NO_BYTES  # lets go of the files it would have sent
            return
        slot.done_ns = self._clock.mono_ns()
        inflight = self.inflight
        while inflight and inflight[0].parts is not None:
            self.ready.append(inflight.pop(0))
        if self.ready and self._answering is None:
            self.wake()

    def _has_room(self) -> None:
        """Handlers have begun: the requests behind them may be started."""
        if self._answering is None and not self.closed:
            self.wake()

    def end(self, reason: str) -> None:
        """Start no further request; the first reason given is the one that is told."""
        if self.ending is not None or self.closed:
            return
        self.ending = reason
        if self._answering is None:
            self.wake()

    def close(self) -> None:
        """The peer is gone: what is unanswered or unsent is dropped."""
        self.closed = True
        self.wake = _nobody
        for slot in self.inflight:
            if slot.parts is not None:
                slot.parts = NO_BYTES
            elif (on_gone := getattr(slot, "on_gone", None)) is not None:
                on_gone()
        self.inflight.clear()
        self.ready.clear()
        self.inbox.close()


def _nobody() -> None:
    """Until somebody drives the connection there is nobody to wake."""
