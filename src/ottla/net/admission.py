"""How much memory requests may take, and the order of those that wait for memory. Pure.

Owns: the bytes that were granted, and the queue of waiting frames. Never: allocates memory, or
knows what a connection is.

A frame that is still arriving needs its whole size granted before more than its beginning is kept.
A granted frame never waits again, so it can finish and release its memory: waiting frames cannot
block each other. They are served in order of arrival, in two lines. A quarter of the memory is
reserved for frames of at most `MEDIUM_BYTES`, as producers send them, so that large frames do not
delay them. In each line one frame is always granted, even beyond the limit: hence the limit may be
exceeded by one frame of each kind.

While a frame waits, its beginning stays in memory. `partial_max` bounds that: beyond it, further
frames are refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

MEDIUM_BYTES: Final = 1 << 20
RESERVED_FOR_MEDIUM: Final = 4
"""The share of the limit that is reserved for medium frames: one quarter."""
PARTIAL_SHARE: Final = 4
"""The share of the limit that partial frames may take on top of it: one quarter."""


class Ticket:
    """A place in the line. `resume` is called once its bytes are granted."""

    __slots__ = ("partial_bytes", "resume", "size")

    def __init__(self, size: int, partial_bytes: int, resume: Callable[[], None]) -> None:
        self.size = size
        self.partial_bytes = partial_bytes
        self.resume = resume


class _Line:
    """Frames of one kind: how much they were granted, and who waits."""

    __slots__ = ("granted", "waiting")

    def __init__(self) -> None:
        self.granted = 0
        self.waiting: deque[Ticket] = deque()


class Admission:
    """Memory for requests, up to `limit` bytes; below 0: as much as they want."""

    def __init__(self, limit: int = -1) -> None:
        self.limit = limit
        self.used = 0  # granted to frames, or partial_bytes by requests that are being handled
        self.partial_bytes = 0  # beginnings of frames that wait
        self._medium = _Line()
        self._large = _Line()

    @property
    def contended(self) -> bool:
        """Whether frames wait for memory."""
        return bool(self._medium.waiting or self._large.waiting)

    @property
    def waiting(self) -> int:
        return len(self._medium.waiting) + len(self._large.waiting)

    @property
    def partial_max(self) -> int:
        return max(self.limit // PARTIAL_SHARE, MEDIUM_BYTES)

    @property
    def is_exhausted(self) -> bool:
        """Whether all memory is granted."""
        return 0 <= self.limit <= self.used

    def try_acquire(self, size: int) -> bool:
        """Grant `size` bytes, unless others wait for theirs or there is no room."""
        line = self._line(size)
        if self.limit >= 0 and (line.waiting or not self._fits(line, size)):
            return False
        line.granted += size
        self.used += size
        return True

    def wait(self, size: int, partial_bytes: int, resume: Callable[[], None]) -> Ticket | None:
        """Wait for `size` bytes, `partial_bytes` of them received already; None: refused."""
        if self.partial_bytes + partial_bytes > self.partial_max and self.contended:
            return None
        ticket = Ticket(size, partial_bytes, resume)
        self.partial_bytes += partial_bytes
        self._line(size).waiting.append(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Stop waiting; the next frame may be granted."""
        line = self._line(ticket.size)
        if ticket in line.waiting:
            line.waiting.remove(ticket)
            self.partial_bytes -= ticket.partial_bytes
            self._serve()

    def release(self, size: int) -> None:
        """What was granted is not needed any more."""
        self._line(size).granted -= size
        self.used -= size
        self._serve()

    def take(self, size: int) -> None:
        """Count bytes that are here already: a request that is being handled."""
        self.used += size

    def give_back(self, size: int) -> None:
        """What `take` counted is gone."""
        self.used -= size
        self._serve()

    def set_limit(self, limit: int) -> None:
        self.limit = limit
        self._serve()

    def _serve(self) -> None:
        for line in (self._medium, self._large):
            while line.waiting and (self.limit < 0 or self._fits(line, line.waiting[0].size)):
                ticket = line.waiting.popleft()
                line.granted += ticket.size
                self.used += ticket.size
                self.partial_bytes -= ticket.partial_bytes
                ticket.resume()

    def _line(self, size: int) -> _Line:
        return self._medium if size <= MEDIUM_BYTES else self._large

    def _fits(self, line: _Line, size: int) -> bool:
        most = self.limit
        if line is self._large:
            most -= most // RESERVED_FOR_MEDIUM
        return not line.granted or self.used + size <= most
