"""What the clients of one simulation did and saw.

Owns the history that is checked at the end, and complaints that need no checker: an answer that no
broker may give.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.testing.history import Event, Fault, Poll, Violation
from tests.sim.loop import SimLoop


class Book:
    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.events: list[Event] = []
        self.complaints: list[Violation] = []

    @classmethod
    def apart(cls, book: Book) -> Book:
        """An empty one, for what is not part of the story."""
        return cls(book._loop)

    @property
    def now_ns(self) -> int:
        return self._loop.now_ns

    def write(self, event: Event) -> None:
        self.events.append(event)

    def fault(self, name: str) -> None:
        self._loop.trace.note("fault", name)
        self.events.append(Fault(name, self.now_ns))

    def complain(self, invariant: str, partition: str, detail: str) -> None:
        self.complaints.append(Violation(invariant, partition, detail))

    def values(self) -> Iterator[str]:
        """All that was read."""
        for event in self.events:
            if isinstance(event, Poll):
                yield from (value for _, value in event.records)
