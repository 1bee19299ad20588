"""One accepted connection on the event loop: bytes in, turns, bytes out.

Owns: when the socket is read, when a turn is taken, when replies are sent, when it all ends.
Never: knows what a frame means (`connection` and the request handler do) or how bytes are sent
(`reply_writer` does).

Reading stops while the connection must not start another request: too many unanswered, too much
unsent, or no memory. What has been read by then stays in its buffer.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from ottla.model.errors import Disconnect
from ottla.net.admission import Ticket
from ottla.net.connection import Connection, Login
from ottla.net.frame_reader import FrameReader
from ottla.net.limits import (
    CONTENDED_BYTES_PER_MS,
    CONTENDED_GRACE_MS,
    LARGE_REPLIES_BYTES,
    MEMORY_WAIT_MAX_MS,
    SLOWEST_BYTES_PER_MS,
    STALL_GRACE_MS,
    SWEEP_MS,
    UNSENT_MAX_BYTES,
    UNSENT_PAUSE_BYTES,
)
from ottla.net.network import Network
from ottla.net.reply_writer import ReplyWriter
from ottla.net.request_slot import NO_BYTES, Answer, Part, Peer, RequestSlot
from ottla.net.tls.failures import concerns_certificate
from ottla.net.transports import CopyingTransport, enlarge_send_buffer, transport_of
from ottla.net.waiting_connections import AdmissionDecision

MS: int = 1_000_000  # nanoseconds

audit = logging.getLogger("ottla.security.audit")


class TlsServer(Protocol):
    """TLS of one listener, with the certificates in force now."""

    def session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject: ...

    def principal(self, session: ssl.SSLObject) -> str | None:
        """Who the client is by its certificate, if any; Disconnect: it is not accepted."""


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """What every connection of one listener has in common."""

    name: str
    protocol: str
    answer: Answer
    control: bool
    tls: TlsServer | None = None
    login: Callable[[Connection], Login] | None = None
    """What answers the requests of a connection until its client is authenticated."""


class Channel(asyncio.BufferedProtocol):
    """Drives one `Connection`."""

    __slots__ = (
        "_closing",
        "_context",
        "_control",
        "_dirty",
        "_draining",
        "_enlarged",
        "_network",
        "_partial_ns",
        "_paused",
        "_progress_ns",
        "_queued",
        "_reader",
        "_sender",
        "_suspended",
        "_throttling",
        "_ticket",
        "_transport",
        "_wait_ns",
        "_writer",
        "active_ns",
        "connection",
        "listener_name",
        "peer",
        "unsent",
    )  # fmt: skip

    _transport: asyncio.Transport

    def __init__(self, network: Network, context: ChannelContext) -> None:
        self._network = network
        self._context = context
        self._control = context.control
        self.listener_name = context.name
        self.active_ns = 0  # when bytes last came
        self._progress_ns = 0  # when unsent bytes last left
        self._partial_ns = 0  # when the frame that is still arriving began; 0: none is
        self._queued = False  # in the run queue
        self._suspended = False  # starts no request until replies have left
        self._ticket: Ticket | None = None  # waits for memory
        self._wait_ns = 0  # since when it does
        self._paused = False  # not read from
        self._dirty = False  # has replies to flush
        self._closing = False  # closes when everything is sent
        self._enlarged = False  # its send buffer is
        self._draining = False  # closes when everything is answered and sent
        self._throttling: asyncio.TimerHandle | None = None  # ends when the client may continue
        # What is not fully sent: the writer's count when it will be, when it began, whose it is.
        self.unsent: list[tuple[int, int, list[RequestSlot]]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        network, context = self._network, self._context
        self._transport = transport
        name = transport.get_extra_info("peername")
        address, port = name[:2] if isinstance(name, tuple) else ("local", 0)
        self.peer = Peer(str(address), int(port), context.name, context.protocol)
        self._reader = FrameReader(network.buffers, network.limits.socket_request_max_bytes)
        self.connection = Connection(self.peer, self._reader, context.answer, network.clock)
        self.connection.apply(network.limits)
        self.connection.wake = self._on_wake
        self.connection.on_waiting_bytes = self._note_replies
        self.connection.on_throttled = self._on_throttled
        self.peer.on_large_replies = self._expect_large_replies
        if context.login is not None:
            self.connection.begin_login(context.login(self.connection))
        loop = asyncio.get_running_loop()
        self._sender = transport_of(transport, loop, network.connection_counts)
        self._writer = ReplyWriter(self._sender, self._on_progress, network.run_blocking)
        self.active_ns = network.clock.mono_ns()
        if network.admit(self) is not AdmissionDecision.NOW:
            self._suspended = True  # what comes stays where it is
            if context.tls is not None:
                self._pause()  # no handshake before it is admitted

    def on_admitted(self) -> None:
        """Start reading: the connection is within the limits now."""
        self.active_ns = self._network.clock.mono_ns()
        self._continue()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.space()

    def buffer_updated(self, nbytes: int) -> None:
        if self.connection.ending is not None or self.connection.closed:
            return
        network = self._network
        whole = self._reader.filled(nbytes)
        self.active_ns = now_ns = network.clock.mono_ns()
        if not whole:
            return
        if self._queued or self._suspended:
            self._reader.settle()
            self._pause()
        elif network.queue.may_run_now(control=self._control):
            self._take_turn(now_ns, now_ns)
        else:
            self._reader.settle()
            self._enqueue()

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        self._network.remove(self, self.peer)

    def pause_writing(self) -> None:
        if isinstance(self._sender, CopyingTransport):
            self._sender.on_paused()

    def resume_writing(self) -> None:
        if isinstance(self._sender, CopyingTransport):
            self._sender.on_resumed()

    def on_secured(self, session: ssl.SSLObject) -> None:
        """The TLS handshake is done: the client may have shown a certificate."""
        assert self._context.tls is not None
        try:
            principal = self._context.tls.principal(session)
        except Disconnect as refusal:
            self.on_insecure(str(refusal), refusal)
            return
        if principal is not None:
            self.peer.principal = principal
        self._network.metrics.authentication_counter(self.listener_name, "successful").value += 1

    def on_insecure(self, reason: str, error: Exception | None) -> None:
        """TLS has failed: close the connection after the alert that was sent to the client."""
        if self.connection.closed:
            return
        self._network.metrics.authentication_counter(self.listener_name, "failed").value += 1
        if isinstance(error, Disconnect) or (error is not None and concerns_certificate(error)):
            audit.info(
                "TLS client refused: host=%s listener=%s reason=%s",
                self.peer.address, self.listener_name, reason,
            )  # fmt: skip
        self._network.error_log.closed(self.peer, reason)
        self._close()

    @property
    def idle(self) -> bool:
        """No request is unanswered and no reply unsent."""
        return not (self.connection.inflight or self._dirty or self.unsent)

    def turn(self) -> None:
        """Its turn in the run queue has come."""
        self._queued = False
        if self.connection.ending is None and not self.connection.closed:
            self._take_turn(self.active_ns, self._network.clock.mono_ns())

    def flush(self) -> None:
        """Send the replies that became ready outside its turn."""
        self._dirty = False
        if self.connection.closed:
            return
        if self.connection.ready:
            self._send(self._network.clock.mono_ns())
        self._continue()

    def evict(self, reason: str) -> None:
        """Close now and log the reason."""
        self._network.error_log.closed(self.peer, reason)
        self._abort()

    def refuse(self) -> None:
        """Close it without a word: it was never admitted."""
        self._abort()

    def drain(self) -> None:
        """Start nothing more; close when what was started is answered and sent."""
        self._draining = True
        self._suspended = True
        self.connection.drain()
        self._pause()
        self._continue()

    def sweep(self, now_ns: int) -> None:
        """Close the connection if it has been idle or stuck for too long."""
        connection, silent_ns = self.connection, now_ns - self.active_ns
        if connection.login is not None:
            connection.login.sweep(now_ns)
        stuck_ns = now_ns - self._progress_ns if self.unsent else 0
        idle_ns = self._network.limits.connections_max_idle_ms * MS
        if connection.closed or self._closing:
            if min(silent_ns, stuck_ns or silent_ns) > STALL_GRACE_MS * MS:
                self._abort()
        elif stuck_ns > idle_ns:
            self.evict(f"the client has not read its replies for {stuck_ns // MS} ms")
        elif silent_ns > idle_ns and self.idle:
            self._close()
        elif self._ticket is not None:
            if now_ns - self._wait_ns > MEMORY_WAIT_MAX_MS * MS:
                connection.end(f"{self._no_memory()} within {MEMORY_WAIT_MAX_MS} ms")
        elif self._is_stalled(now_ns, silent_ns):
            connection.end(
                f"request timed out: received {self._reader.left} bytes "
                f"in {(now_ns - self._partial_ns) // MS} ms"
            )
        if silent_ns > SWEEP_MS * MS:
            self._reader.trim()

    def _is_stalled(self, now_ns: int, silent_ns: int) -> bool:
        """Whether a frame takes too long to arrive, or stopped while others wait for its memory."""
        if not self._partial_ns or self._paused:
            return False
        left, took_ns = self._reader.left, now_ns - self._partial_ns
        if not (self._reader.granted and self._network.buffers.admission.contended):
            return took_ns > (STALL_GRACE_MS + left // SLOWEST_BYTES_PER_MS) * MS
        allowed_ms = CONTENDED_GRACE_MS + left // CONTENDED_BYTES_PER_MS
        return took_ns > allowed_ms * MS or silent_ns > CONTENDED_GRACE_MS * MS

    def _take_turn(self, received_ns: int, started_ns: int) -> None:
        network, connection, reader = self._network, self.connection, self._reader
        network.in_turn = True
        try:
            answered, now_ns = connection.turn(received_ns, started_ns)
            if connection.ready:
                now_ns = self._send(now_ns)
        finally:
            network.in_turn = False
            reader.settle()
        network.metrics.busy_ns += now_ns - started_ns
        left = reader.left
        if not left:
            self._partial_ns = 0
        elif answered or not self._partial_ns:
            self._partial_ns = received_ns
        if left or self._paused or self.unsent or connection.muted or connection.ending is not None:
            self._continue()
        if network.dirty:
            network.flush()

    def _continue(self) -> None:
        """After any change: close, pause, queue or read on, as the state requires."""
        connection = self.connection
        if connection.closed:
            return
        if connection.ending is not None:
            self._finish(connection.ending)
        elif self._draining:
            if self.idle:
                self._close()
        elif connection.muted or self._writer.unsent_bytes > UNSENT_PAUSE_BYTES:
            self._suspended = True
            self._pause()
        else:
            self._suspended = False
            if not self._queued:
                self._read_on()

    def _read_on(self) -> None:
        if self._reader.has_frame:
            self._enqueue()
        elif self._reader.missing_memory():
            self._pause()
            if self._ticket is None:
                self._wait_for_memory()
        elif self._paused:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _enqueue(self) -> None:
        self._queued = True
        self._partial_ns = 0
        room = self._network.queue.enqueue(self, control=self._control)
        if not room or self._reader.is_full:
            self._pause()

    def _send(self, flush_ns: int) -> int:
        """Hand every reply whose turn has come to the writer. The time when that was done."""
        slots = self.connection.take()
        parts: list[Part] = [part for slot in slots for part in slot.parts or ()]
        writer = self._writer
        try:
            sent = writer.send(parts) if parts else writer.idle
        except OSError as error:
            self._on_send_error(error)
            return flush_ns
        now_ns = self._network.clock.mono_ns()
        if sent:
            self._sent(slots, flush_ns, now_ns)
            return now_ns
        if not self.unsent:
            self._progress_ns = now_ns
        for slot in slots:
            slot.parts = NO_BYTES  # each file is closed when it is sent, not all at the end
        self.unsent.append((writer.promised, flush_ns, slots))
        self._note_replies()
        if writer.unsent_bytes > UNSENT_MAX_BYTES and len(self.unsent) > 1:
            self.evict(
                f"the client has not read {writer.unsent_bytes} bytes of replies, "
                f"the limit is {UNSENT_MAX_BYTES}"
            )
        return now_ns

    def _sent(self, slots: list[RequestSlot], flush_ns: int, sent_ns: int) -> None:
        self._network.metrics.record(slots, flush_ns, sent_ns)
        for slot in slots:
            if slot.on_sent is not None:
                slot.on_sent()

    def _on_progress(self) -> None:
        """Some of what was unsent has left, or it turned out that the peer is gone."""
        if self._writer.failed is not None:
            self._on_send_error(self._writer.failed)
            return
        self._progress_ns = now_ns = self._network.clock.mono_ns()
        while self.unsent and self.unsent[0][0] <= self._writer.delivered:
            _, flush_ns, slots = self.unsent.pop(0)
            self._sent(slots, flush_ns, now_ns)
        self._note_replies()
        self._continue()

    def _note_replies(self) -> None:
        held = self._writer.unsent_bytes + self.connection.waiting_bytes + self._sender.held_bytes
        self._network.note_replies(self, held)

    def _on_send_error(self, error: OSError) -> None:
        if not isinstance(error, ConnectionError):  # peers may go, files may not
            self._network.error_log.closed(self.peer, f"cannot send reply: {error}")
        self._abort()

    def _expect_large_replies(self) -> None:
        if self._enlarged:
            return
        self._enlarged = True
        if self._network.limits.socket_send_buffer_bytes > 0:  # else the kernel sizes it
            enlarge_send_buffer(self._transport, LARGE_REPLIES_BYTES)

    def _on_wake(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._network.wake(self)

    def _wait_for_memory(self) -> None:
        reader, network = self._reader, self._network
        self._wait_ns = network.clock.mono_ns()
        admission = network.buffers.admission
        self._ticket = admission.wait(reader.missing_memory(), reader.left, self._on_memory_granted)
        if self._ticket is None:
            self.connection.end(
                f"{self._no_memory()}; {admission.waiting} other requests are already waiting"
            )

    def _no_memory(self) -> str:
        return (
            f"no memory for a request of {self._reader.missing_memory()} bytes "
            f"(queued.max.request.bytes={self._network.buffers.admission.limit})"
        )

    def _on_memory_granted(self) -> None:
        """There is memory for the frame that had to wait."""
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._reader.admit(ticket.size)
            self._partial_ns = self._network.clock.mono_ns()  # it could not arrive until now
            self._continue()

    def _on_throttled(self, delay_ms: int) -> None:
        if self._throttling is not None:
            self._throttling.cancel()
        loop = asyncio.get_running_loop()
        self._throttling = loop.call_later(delay_ms / 1e3, self._on_throttling_ended)

    def _on_throttling_ended(self) -> None:
        self._throttling = None
        self.connection.end_throttling()
        self._continue()

    def _pause(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _finish(self, reason: str) -> None:
        """Log the reason once, and close when the replies that are ready are sent."""
        if not self._closing:
            self._closing = True
            self._network.error_log.closed(self.peer, reason)
            self._pause()
        if self._writer.idle:
            self._close()

    def _close(self) -> None:
        self._release()
        self._transport.close()

    def _abort(self) -> None:
        self._release()
        self._transport.abort()

    def _release(self) -> None:
        """Release everything: no descriptor, file or buffer is used afterwards."""
        if self._ticket is not None:
            ticket, self._ticket = self._ticket, None
            self._network.buffers.admission.leave(ticket)
        if self._throttling is not None:
            self._throttling.cancel()
            self._throttling = None
        self.connection.close()
        self._writer.close()
        self.unsent.clear()
        self._network.replies.note(self, 0)
