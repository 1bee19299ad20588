"""What every host of group members does: hears commands, keeps threads, writes what they saw.

Commands, a line of words between tabs each: `join` name group topic strategy, `leave` name. At the
end of the input everybody leaves. How long a member may be silent is the host's: one that will be
killed shall be missed soon, and of the others none, however busy the machine is.
Never: knows a client library.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

HEARTBEAT_MS: Final = 300
POLL_S: Final = 0.1


class Spec(NamedTuple):
    """Who shall join what, and where it writes what it saw."""

    bootstrap: str
    session_ms: int
    name: str
    group: str
    topic: str
    strategy: str


class Book:
    """The file that outlives this process, line by line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._lock = threading.Lock()

    def write(self, kind: str, **fields: Any) -> None:
        with self._lock:
            self._file.write(json.dumps({"kind": kind, **fields}) + "\n")


class Member(threading.Thread, ABC):
    """One member, as its own thread; a client library fills in the rest."""

    def __init__(self, spec: Spec, book: Book) -> None:
        super().__init__(name=spec.name, daemon=True)
        self.spec = spec
        self.stopping = threading.Event()
        self.generation = -1
        self._book = book
        self._assigned: dict[int, int] = {}

    @abstractmethod
    def run(self) -> None:
        """Join, read and commit until told to stop, and leave."""

    def within(self, before: int, after: int) -> None:
        """Note in which generation something was done; in none, if it changed meanwhile."""
        self.generation = after if before == after else -1

    def gained(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._assigned[partition] = self._assigned.get(partition, 0) + 1
            self._owns(partition, True)

    def lost(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._owns(partition, False)

    def saw(self, partition: int, offsets: list[int], values: list[bytes]) -> None:
        records = list(zip(offsets, (value.decode() for value in values), strict=True))
        self._book.write(
            "poll", process=self.spec.name, partition=self._where(partition),
            assigned=self._assigned.get(partition, 0), records=records, group=self.spec.group,
            generation=self.generation, at_ns=time.monotonic_ns(),
        )  # fmt: skip

    def committed(self, offsets: Mapping[int, int], began_ns: int, *, ok: bool) -> None:
        for partition, offset in offsets.items():
            self._book.write(
                "commit", process=self.spec.name, group=self.spec.group,
                partition=self._where(partition), offset=offset, invoked_ns=began_ns,
                completed_ns=time.monotonic_ns(), outcome="ok" if ok else "unknown",
                generation=self.generation,
            )  # fmt: skip

    def _owns(self, partition: int, gained: bool) -> None:
        self._book.write(
            "owns", process=self.spec.name, group=self.spec.group,
            partition=self._where(partition), at_ns=time.monotonic_ns(), gained=gained,
        )  # fmt: skip

    def _where(self, partition: int) -> str:
        return f"{self.spec.topic}-{partition}"


def host(member: type[Member]) -> None:
    """Serve commands until there are no more: `python -m … bootstrap file session`.

    On SIGUSR1 every thread says on stderr where it is.
    """
    faulthandler.register(signal.SIGUSR1)
    bootstrap, path, session_ms = sys.argv[1:]
    book = Book(Path(path))
    members: dict[str, Member] = {}
    for line in sys.stdin:
        command, name, *more = line.rstrip("\n").split("\t")
        if command == "join":
            members[name] = member(Spec(bootstrap, int(session_ms), name, *more), book)
            members[name].start()
        else:
            members.pop(name).stopping.set()
    for left in members.values():
        left.stopping.set()
    for thread in threading.enumerate():
        if isinstance(thread, Member):
            thread.join(30)
