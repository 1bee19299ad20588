"""What a metadata store is.

A tree of small nodes, each with a version that grows by one per change. A write may demand the
version it saw; several writes may be joined into one that happens whole or not at all. Ephemeral
nodes vanish with the session that made them. A watch fires once, on the event loop, after a
change; whoever wants more sets it again when reading.

Never says where the tree lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

ANY_VERSION = -1


class Node(NamedTuple):
    data: bytes
    version: int
    created: int
    """Number of the write that made it: grows for ever, across restarts (a broker's epoch)."""
    ephemeral: bool = False


class Create(NamedTuple):
    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False
    """Append a ten-digit number that grows with every child of the parent."""


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Change nothing; only demand this version."""

    path: str
    version: int


Op: TypeAlias = Create | Set | Delete | Check
Result: TypeAlias = str | int | None
"""The path of a Create, the new version of a Set, nothing else."""

Watch: TypeAlias = Callable[[str], None]


class Session(Enum):
    """What has become of our session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """No word from the store: others may already think us gone. Controller work stops here."""
    EXPIRED = "expired"
    """Our ephemerals are gone; `start` begins a new session."""


class StoreError(Exception):
    """A write or read the store refused. In a multi, `at` is the operation at fault."""

    def __init__(self, path: str, at: int = 0) -> None:
        super().__init__(f"{type(self).__name__}: {path}")
        self.path = path
        self.at = at


class NodeExists(StoreError):
    """Create found a node already there."""


class NoNode(StoreError):
    """The node, or the parent of a new one, is not there."""


class BadVersion(StoreError):
    """Somebody changed the node since it was read."""


class NotEmpty(StoreError):
    """Delete found children."""


class EphemeralParent(StoreError):
    """An ephemeral node cannot have children: they would outlive it."""


class SessionExpired(StoreError):
    """The session is over: nothing more happens under it."""


class StoreUnavailable(OSError):
    """The store cannot be reached, or its disk failed; a write may or may not have happened."""


class Store(Protocol):
    """One session with the tree. A home of the tree inherits the calls for a single node."""

    async def start(self) -> None:
        """Open a session; again after it expired."""

    async def close(self) -> None:
        """End the session; its ephemerals vanish."""

    def on_session(self, listener: Callable[[Session], None]) -> None:
        """Be told, on the event loop, whenever the session's state changes."""

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """The nodes, in the order asked for; None where there is none."""
        ...

    async def children(self, path: str) -> list[str]:
        """Names in order; NoNode if the parent is not there."""
        ...

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        """All of it or none of it; StoreError.at names the operation that was refused."""
        ...

    async def watch_data(self, path: str, watch: Watch) -> Node | None:
        """Read, and hear once when the node is next created, changed or deleted."""
        ...

    async def watch_children(self, path: str, watch: Watch) -> list[str]:
        """Read, and hear once when a child comes or goes, or the parent is deleted."""
        ...

    async def get(self, path: str) -> Node | None:
        [node] = await self.get_many([path])
        return node

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """The path made, which of a sequential node is known only now."""
        [made] = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(made, str)
        return made

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """The version it has now."""
        [new] = await self.multi([Set(path, data, version)])
        assert isinstance(new, int)
        return new

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])
