"""A hierarchical timing wheel: many timeouts, most of them cancelled before they are due.

Owns: which entry sits in which bucket, and the queue of buckets by expiration.
Never: reads a clock, runs an entry, takes a lock.

A sorted timer pays O(log n) to add and to cancel. A wheel pays O(1) for both, because a timeout
only has to be in the right bucket, not in the right order. Level 1 has buckets of one tick; each
level above has buckets as wide as the whole level below, made when first needed:

    level   tick     span (20 buckets)
    1       1 ms     20 ms
    2       20 ms    400 ms
    3       400 ms   8 s

At time 0 a timeout of 450 ms goes to level 3, bucket [400, 800). When that bucket is due 50 ms
remain: level 2, bucket [40, 60) of the turn. Then 10 ms remain: level 1, and then it is due.

All levels share one queue of buckets. A bucket enters it when it takes on a new expiration (first
use, or reuse after the wheel has turned), so it is never in it twice for one turn.

A bucket is a dict and not a linked list: in Python it is the cheaper ordered set with O(1)
removal. The wheel lives on one thread, so an entry cannot move while it is being removed and one
removal is enough (elsewhere this is a retry loop).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from ottla.model.clock import MonoMs

TICK_MS: Final = 1
BUCKETS: Final = 20
NEVER: Final = -1  # the expiration of a bucket that is in no queue


class Entry:
    """Something that expires. Subclasses say what happens then, by overriding `on_timeout`.

    Entries are told apart by identity: a dataclass that is an entry must say `eq=False`.
    """

    __slots__ = ("_bucket", "expires_ms")

    def __init__(self) -> None:
        self.expires_ms = MonoMs(0)
        self._bucket: Bucket | None = None

    @property
    def waiting(self) -> bool:
        """In a wheel: neither expired nor cancelled."""
        return self._bucket is not None

    def on_timeout(self) -> None:
        """Its time has come; it is no longer in the wheel."""
        raise NotImplementedError


class Bucket(dict[Entry, None]):
    """The entries that fall into one slot of one level's present turn."""

    __slots__ = ("expires_ms",)

    def __init__(self) -> None:
        super().__init__()
        self.expires_ms = NEVER


class Level:
    """One wheel of the hierarchy."""

    __slots__ = ("buckets", "now_ms", "span_ms", "tick_ms")

    def __init__(self, tick_ms: int, size: int, now_ms: MonoMs) -> None:
        self.tick_ms = tick_ms
        self.span_ms = tick_ms * size
        self.now_ms = MonoMs(now_ms - now_ms % tick_ms)
        self.buckets = [Bucket() for _ in range(size)]


class TimingWheel:
    """Entries by expiration, for one thread."""

    __slots__ = ("_count", "_levels", "_queue", "_queued", "_size")

    def __init__(self, start_ms: MonoMs, tick_ms: int = TICK_MS, size: int = BUCKETS) -> None:
        self._size = size
        self._levels = [Level(tick_ms, size, start_ms)]
        self._queue: list[tuple[MonoMs, int, Bucket]] = []
        self._queued = 0  # breaks ties in the heap, first queued first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def level_count(self) -> int:
        return len(self._levels)

    def add(self, entry: Entry, expires_ms: MonoMs) -> bool:
        """Hold `entry` until `expires_ms`. False: it is due already, and was not added."""
        if entry._bucket is not None:
            self.cancel(entry)
        entry.expires_ms = expires_ms
        if not self._place(entry):
            return False
        self._count += 1
        return True

    def cancel(self, entry: Entry) -> bool:
        """Take `entry` out. False: it was not in the wheel."""
        bucket = entry._bucket
        if bucket is None:
            return False
        del bucket[entry]
        entry._bucket = None
        self._count -= 1
        return True

    def next_ms(self) -> MonoMs | None:
        """When `advance` is next needed; None when nothing waits."""
        queue = self._queue
        while queue:
            expires_ms, _, bucket = queue[0]
            if bucket:
                return expires_ms
            heappop(queue)  # everything in it was cancelled: no reason to wake up
            bucket.expires_ms = NEVER
        return None

    def advance(self, now_ms: MonoMs) -> list[Entry]:
        """Move the clock to `now_ms` and take out what is due, earliest bucket first."""
        due: list[Entry] = []
        queue = self._queue
        while queue and queue[0][0] <= now_ms:
            expires_ms, _, bucket = heappop(queue)
            self._turn_to(expires_ms)
            entries = list(bucket)
            bucket.clear()  # its next expiration is another, so it will be queued again
            for entry in entries:
                entry._bucket = None
                if not self._place(entry):
                    self._count -= 1
                    due.append(entry)
        self._turn_to(now_ms)
        return due

    def _turn_to(self, now_ms: MonoMs) -> None:
        for level in self._levels:
            if now_ms < level.now_ms + level.tick_ms:
                return
            level.now_ms = MonoMs(now_ms - now_ms % level.tick_ms)

    def _place(self, entry: Entry) -> bool:
        """Into the lowest level whose span reaches it; False when it is due."""
        expires_ms = entry.expires_ms
        level = self._levels[0]
        if expires_ms < level.now_ms + level.tick_ms:
            return False
        height = 0
        while expires_ms >= level.now_ms + level.span_ms:
            height += 1
            if height == len(self._levels):
                self._levels.append(Level(level.span_ms, self._size, level.now_ms))
            level = self._levels[height]
        tick = expires_ms // level.tick_ms
        bucket = level.buckets[tick % self._size]
        bucket[entry] = None
        entry._bucket = bucket
        bucket_ms = tick * level.tick_ms
        if bucket.expires_ms != bucket_ms:
            bucket.expires_ms = bucket_ms
            self._queued += 1
            heappush(self._queue, (MonoMs(bucket_ms), self._queued, bucket))
        return True
