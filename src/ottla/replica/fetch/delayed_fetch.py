"""Fetches that wait until there is enough to read, or for their time.

Followers wait hardly at all while leaders change. The broker that becomes a leader answers those
that wait, and for a second those that come after a few milliseconds: a follower adds a partition to
its next fetch only, and acks=all waits for that fetch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol, TypeAlias

from ottla.delay.purgatory import Delayed, Purgatory
from ottla.model.clock import Clock, MonoMs
from ottla.model.ids import TopicPartition
from ottla.replica.fetch.options import FetchOptions
from ottla.replica.fetch.session_partition import SessionChanges, SessionPartition
from ottla.replica.partition import HostedPartition
from ottla.replica.partition_fetch import PartitionFetch, PartitionFetchResult

FOLLOWERS: Final = TopicPartition("", -1)
"""The key under which fetches in followers' sessions wait: the sessions are told of changes."""

CHANGING_MS: Final = 1_000
WAIT_MS: Final = 20
"""How long a follower's fetch waits at most while leaders change."""

Done: TypeAlias = Callable[[list[PartitionFetchResult]], None]


class Reads(Protocol):
    """What a waiting fetch asks for: `replica/read.py`."""

    @property
    def watermark_wait_ms(self) -> int: ...

    def is_ready(self, requests: list[PartitionFetch], options: FetchOptions) -> bool: ...

    def has_enough(self, requests: list[PartitionFetch], options: FetchOptions) -> bool: ...

    def has_newer_watermark(
        self, requests: list[PartitionFetch], options: FetchOptions
    ) -> bool: ...

    def call_soon(self, callback: Callable[[], object]) -> None: ...

    def answer(
        self, requests: list[PartitionFetch], options: FetchOptions, on_done: Done
    ) -> None: ...


class FollowerWaits:
    """How long fetches of followers wait; told of the partitions that this broker leads."""

    def __init__(self, fetches: Purgatory[TopicPartition], clock: Clock) -> None:
        self._fetches = fetches
        self._clock = clock
        self._short_until_ms = MonoMs(0)

    def shorten(self, options: FetchOptions) -> FetchOptions:
        if options.max_wait_ms <= WAIT_MS or self._clock.mono_ms() >= self._short_until_ms:
            return options
        return replace(options, max_wait_ms=WAIT_MS)

    def on_lead(self, _: HostedPartition) -> None:
        now_ms = self._clock.mono_ms()
        began = now_ms >= self._short_until_ms
        self._short_until_ms = MonoMs(now_ms + CHANGING_MS)
        if began:
            for waiting in self._fetches.drop(FOLLOWERS):
                waiting.force_complete()

    def on_unlead(self, _: TopicPartition) -> None:
        """Followers learn it from the controller."""


class DelayedFetch(Delayed):
    """A fetch that found too little; what it gets is read when it ends."""

    __slots__ = ("_on_done", "_options", "_reads", "_requests")

    def __init__(
        self, reads: Reads, requests: list[PartitionFetch], options: FetchOptions, on_done: Done
    ) -> None:
        super().__init__(options.max_wait_ms)
        self._reads = reads
        self._requests = requests
        self._options = options
        self._on_done = on_done

    def try_complete(self) -> bool:
        return self._reads.is_ready(self._requests, self._options) and self.force_complete()

    def on_complete(self) -> None:
        self._reads.answer(self._requests, self._options, self._on_done)
        self._release()

    def forget(self) -> None:
        """The client has disconnected: end without a reply."""
        if not self.completed:
            self.abandon()
            self._release()

    def _release(self) -> None:
        """Watch lists may hold this for a while yet; and whom it answers knows it, which would be a
        cycle of a hundred objects a fetch for the collector: 2 ms, three times a second. One that
        has waited for long is old to the collector, which seldom looks at what is old.
        """
        del self._on_done, self._requests


class DelayedFollowerFetch(DelayedFetch):
    """A fetch in a follower's session; its partitions are those that changed until it ends.

    A newer high watermark alone is sent after a few milliseconds, if no records come meanwhile.
    Records are sent once the event loop has handled what it has received: where several batches
    were, the follower gets them in one reply and not in one each (benchmarks/cluster.py).
    """

    __slots__ = ("_changes", "_completing", "_hastened")

    def __init__(
        self, reads: Reads, changes: SessionChanges, options: FetchOptions, on_done: Done
    ) -> None:
        super().__init__(reads, [], options, on_done)
        self._changes = changes
        self._completing = False
        self._hastened = False
        changes.on_mark = self._on_mark

    def complete_soon(self) -> None:
        """There are records for the follower."""
        if not self._completing:
            self._completing = True
            self._reads.call_soon(self.force_complete)

    def send_watermark_soon(self) -> None:
        """The follower needs a newer high watermark."""
        wait_ms = self._reads.watermark_wait_ms
        if not wait_ms:
            self.force_complete()
        elif not self._hastened:
            self._hastened = True
            self.hasten(wait_ms)

    def _on_mark(self, partition: SessionPartition) -> None:
        if self._completing:
            return
        one_is_enough = self._options.min_bytes <= 1
        requests = [partition.request] if one_is_enough else self._changes.requests
        if self._reads.has_enough(requests, self._options):
            self.complete_soon()
        elif self._reads.has_newer_watermark([partition.request], self._options):
            self.send_watermark_soon()

    def try_complete(self) -> bool:
        return False  # `_on_mark` does

    def on_complete(self) -> None:
        self._changes.on_mark = None
        self._requests = self._changes.take()
        super().on_complete()

    def forget(self) -> None:
        if not self.completed:
            self._changes.on_mark = None
        super().forget()
