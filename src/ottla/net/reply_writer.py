"""Replies on their way out: in order, whole, and no more in memory than they must be.

Owns: the parts of one connection that are not sent yet, and how far the first one got.
Never: calls the system; a `Transport` takes bytes and files and returns how much it took.

Bytes before a file are sent with a hint that more follows, so that a fetch's header and records
share packets. A file whose pages are not in memory is warmed on a thread first: the loop would
stop for the disk. Replies behind it wait, other connections go on.
"""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from ottla.net.limits import SEND_TURN_BYTES
from ottla.net.request_slot import BYTES, Bytes, FileSlice, Part

BUFFERS_MAX: Final = 512  # of one system call; the kernel's own limit is 1024
JOIN_MAX_BYTES: Final = 64 << 10
MERGE_PARTS: Final = 512  # merged in one turn: 2 ms, if each is a file to be read
SMALL_FILE_BYTES: Final = 16 << 10  # below this reading and writing is quicker than sendfile
FILE_TOO_SHORT: Final = "cannot send reply: the file is shorter than the slice to send"

T = TypeVar("T")


class RunBlocking(Protocol):
    """Runs a function on a thread; the future is done on the loop."""

    def __call__(self, work: Callable[[], T], /) -> Future[T]: ...


class Transport(Protocol):
    """What bytes leave through. Each call says how many were taken; 0 when none could be."""

    @property
    def held_bytes(self) -> int:
        """Memory of its own for what is not sent yet: ciphertext."""

    def write(self, data: Bytes) -> int: ...

    def write_all(self, buffers: Sequence[Bytes], *, more: bool) -> int: ...

    def send_file(self, slice_: FileSlice, at: int, limit: int) -> int: ...

    def call_when_writable(self, callback: Callable[[], None] | None) -> None: ...

    def close(self) -> None: ...


class ReplyWriter:
    """The sending half of one connection. `send` may raise OSError: peer or file is gone."""

    __slots__ = (
        "_at",
        "_closed",
        "_on_progress",
        "_pending",
        "_probed",
        "_run_blocking",
        "_transport",
        "_unmerged",
        "delivered",
        "failed",
        "promised",
        "unsent_bytes",
    )

    def __init__(
        self, transport: Transport, on_progress: Callable[[], None], run_blocking: RunBlocking
    ) -> None:
        self.promised = 0  # bytes ever put off
        self.delivered = 0  # bytes of those sent since
        self.unsent_bytes = 0  # in memory, files left out
        self.failed: OSError | None = None  # what happened while nobody was sending
        self._transport = transport
        self._on_progress = on_progress
        self._run_blocking = run_blocking
        self._pending: list[Part] = []
        self._unmerged: deque[Part] = deque()  # to be sent after `_pending`
        self._at = 0  # bytes of the first pending file that are sent
        self._probed = False  # the first pending file is known to be in memory
        self._closed = False

    @property
    def idle(self) -> bool:
        return not self._pending and not self._unmerged

    def send(self, parts: Sequence[Part]) -> bool:
        """Send now what can be sent. True: everything was."""
        pending = self._pending
        waiting = not self.idle
        if waiting or len(parts) > MERGE_PARTS:
            self._put_off(parts)
            parts = ()
        elif len(parts) > 1 or type(parts[0]) is not bytes:
            parts = _merged(parts)
        if len(parts) == 1 and type(parts[0]) is bytes:
            data = parts[0]
            taken = self._transport.write(data)
            if taken == len(data):
                return True
            parts = (memoryview(data)[taken:],)
        for part in parts:
            if type(part) in BYTES:
                size = len(part)  # type: ignore[arg-type]
                self.unsent_bytes += size
            else:
                size = part.size  # type: ignore[union-attr]
            if size:
                self.promised += size
                pending.append(part)
        if not waiting:
            self._push()
        return self.idle

    def _put_off(self, parts: Sequence[Part]) -> None:
        """Merge and send these later, in turns."""
        self.promised += sum(map(_size, parts))
        self.unsent_bytes += _bytes_in_memory(parts)
        self._unmerged.extend(parts)

    def _merge_some(self) -> None:
        unmerged = self._unmerged
        parts = [unmerged.popleft() for _ in range(min(MERGE_PARTS, len(unmerged)))]
        merged = _merged([part for part in parts if _size(part)])
        self.unsent_bytes += _bytes_in_memory(merged) - _bytes_in_memory(parts)
        self._pending.extend(merged)

    def close(self) -> None:
        """Send nothing more, ever; the files that were to be sent are let go."""
        if not self._closed:
            self._closed = True
            self._pending.clear()
            self._unmerged.clear()
            self.unsent_bytes = 0
            self._on_progress = _ignore  # so that its owner can be freed at once
            self._transport.close()

    def _push(self) -> None:
        """Send until all is sent, the transport takes no more, or the turn is over."""
        turn_bytes = SEND_TURN_BYTES
        if self._unmerged and len(self._pending) <= 1:
            self._merge_some()
        while self._pending and turn_bytes > 0:
            head = self._pending[0]
            if type(head) in BYTES:
                taken = self._push_bytes()
            elif self._is_warm(head):  # type: ignore[arg-type]
                taken = self._push_file(head, turn_bytes)  # type: ignore[arg-type]
            else:
                return
            if not taken:
                break
            turn_bytes -= taken
            self.delivered += taken
        self._transport.call_when_writable(None if self.idle else self._again)

    def _push_bytes(self) -> int:
        run: list[Bytes] = []
        more = False
        for part in self._pending[:BUFFERS_MAX]:
            if type(part) not in BYTES:
                more = True
                break
            run.append(part)  # type: ignore[arg-type]
        written = self._transport.write_all(run, more=more)
        self.unsent_bytes -= written
        unmatched = written
        whole = 0
        for buffer in run:
            if unmatched < len(buffer):
                self._pending[whole] = memoryview(buffer)[unmatched:]
                break
            unmatched -= len(buffer)
            whole += 1
        del self._pending[:whole]
        return written

    def _push_file(self, head: FileSlice, limit: int) -> int:
        taken = self._transport.send_file(head, self._at, limit)
        self._at += taken
        if self._at >= head.size:
            self._pending.pop(0)
            self._at = 0
            self._probed = False
        return taken

    def _is_warm(self, head: FileSlice) -> bool:
        """False: its pages are being read, and `_push` goes on when they are there."""
        if self._probed:
            return True
        self._probed = True  # asked once: a page evicted again is read by the kernel
        if head.is_cached():
            return True
        self._transport.call_when_writable(None)
        self._run_blocking(head.warm).add_done_callback(self._warmed)
        return False

    def _warmed(self, done: Future[None]) -> None:
        if not done.cancelled():
            done.exception()  # a failing disk shows itself when the file is sent
        self._again()

    def _again(self) -> None:
        if self._closed:
            return
        try:
            self._push()
        except OSError as error:
            self.failed = error.with_traceback(None)  # which would keep the files alive
        self._on_progress()


def _ignore() -> None:
    """The progress callback of a closed writer."""


def _size(part: Part) -> int:
    return len(part) if isinstance(part, BYTES) else part.size


def _bytes_in_memory(parts: Sequence[Part]) -> int:
    return sum(len(part) for part in parts if isinstance(part, BYTES))


def _merged(parts: Sequence[Part]) -> Sequence[Part]:
    """The same bytes in fewer parts: small ones side by side become one, small files are read.

    A fetch of many partitions that got a few records each is one system call then, and not two
    for every partition.
    """
    merged: list[Part] = []
    run: list[bytes] = []
    size = 0
    for part in parts:
        data = part if type(part) is bytes else _small_file(part)
        if run and (data is None or size + len(data) > JOIN_MAX_BYTES):
            merged.append(b"".join(run))
            run, size = [], 0
        if data is None:
            merged.append(part)
        else:
            run.append(data)
            size += len(data)
    if run:
        merged.append(b"".join(run))
    return merged


def _small_file(part: Part) -> bytes | None:
    """What is in a file too small to be worth `sendfile`, unless that would wait for the disk."""
    if isinstance(part, BYTES) or part.size > SMALL_FILE_BYTES:
        return None
    if not part.is_cached():
        return None
    data = part.read()
    if len(data) != part.size:
        raise OSError(FILE_TOO_SHORT)
    return data
