"""The interface of a metadata store.

A tree of small nodes, each with a version that grows by one per change. A write may require a
version; several writes may be combined into one atomic write. Ephemeral nodes are deleted when the
session that created them ends. A watch fires once, on the event loop, after a change; to watch
again, the caller reads again.

What a caller must be prepared for, because ZooKeeper's client is like this:

- At SUSPENDED and EXPIRED all watches are lost, without being called. After the next CONNECTED the
  caller sets its watches again and reads again whatever it watches.
- A write that failed with `StoreUnavailable` may have happened. Before it is repeated, the caller
  finds out, for example by the owner of the node it created.
- A read may return the tree as of a moment ago, but never older than what this session has already
  read or written. A refused write makes the next read at least as new as the refusal.

Never depends on a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeAlias

ANY_VERSION = -1
BATCH_OPS: Final = 500
"""Operations in one atomic write, for those who have very many."""
BATCH_BYTES: Final = 500_000
"""Their size: ZooKeeper closes the connection on a request of a megabyte."""
OP_BYTES: Final = 80
"""The size of an operation without its path and data."""


class Node(NamedTuple):
    data: bytes
    version: int
    created: int
    """The number of the write that created it, growing across restarts (a broker's epoch)."""
    owner: int = 0
    """The session of an ephemeral node; otherwise 0."""
    modified: int = 0
    """The number of the write that last changed it. The embedded store remembers it only while it
    is open: afterwards it is `created`."""

    @property
    def ephemeral(self) -> bool:
        return self.owner != 0


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
    """Change nothing; only require this version."""

    path: str
    version: int


Op: TypeAlias = Create | Set | Delete | Check
Result: TypeAlias = str | int | None
"""The path of a Create, the new version of a Set, nothing else."""

Watch: TypeAlias = Callable[[str], None]


class Session(Enum):
    """The state of the session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """No reply from the store: the session may have expired, and all watches are lost."""
    OVERDUE = "overdue"
    """Still no reply, for as long as the session lasts: another broker may be controller by now,
    so the controller resigns. The session may turn out to be alive."""
    EXPIRED = "expired"
    """The ephemeral nodes are deleted; `start` opens a new session."""


class Owner(Enum):
    """Whose session an ephemeral node belongs to, as seen from one client."""

    THIS_SESSION = "this session"
    EARLIER_SESSION = "earlier session"
    """An expired session of the same client, whose nodes are about to be deleted."""
    ANOTHER = "another"


class StoreError(Exception):
    """The store refused a read or write. In a multi, `at` is the index of the refused operation."""

    def __init__(self, path: str, at: int = 0) -> None:
        super().__init__(f"{type(self).__name__}: {path}")
        self.path = path
        self.at = at


class NodeExists(StoreError):
    """The node to create already exists."""


class NoNode(StoreError):
    """The node, or the parent of a node to create, does not exist."""


class BadVersion(StoreError):
    """The node has been changed since it was read."""


class NotEmpty(StoreError):
    """The node to delete has children."""


class EphemeralParent(StoreError):
    """An ephemeral node cannot have children."""


class SessionExpired(StoreError):
    """The session has expired; `start` opens a new one."""


class StoreUnavailable(OSError):
    """The store cannot be reached, or its disk failed; a write may or may not have happened."""


class RequiredNode(NamedTuple):
    path: str
    data: bytes


class Store(Protocol):
    """One session with the tree. Backends inherit the calls for a single node."""

    required: RequiredNode | None = None
    """Further sessions are opened only with a tree that has this node: `start` waits for it.

    Without it the store lost its data, and nothing may be read or written until it is restored. A
    store whose sessions do not expire has nothing to do.
    """

    @property
    def sessions(self) -> Sequence[int]:
        """The ids of the sessions opened so far, the current one last."""
        ...

    async def start(self) -> None:
        """Open a session; again after it expired. Does nothing if the session is open.

        StoreUnavailable if the store cannot be reached for a while; `start` may be called again.
        """

    async def close(self) -> None:
        """End the session; its ephemeral nodes are deleted."""

    def on_session(self, listener: Callable[[Session], None]) -> None:
        """Call `listener` on the event loop whenever the state of the session changes."""

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """The nodes, in the order of `paths`; None for those that do not exist."""
        ...

    async def children(self, path: str) -> list[str]:
        """Sorted names; NoNode if the parent does not exist."""
        ...

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        """All operations or none; StoreError.at is the index of the refused operation."""
        ...

    async def watch_data(self, path: str, watch: Watch) -> Node | None:
        """Read, and call `watch` once when the node is next created, changed or deleted."""
        ...

    async def watch_children(self, path: str, watch: Watch) -> list[str]:
        """Read, and call `watch` once when a child is created or deleted, or the parent deleted."""
        ...

    async def get(self, path: str) -> Node | None:
        [node] = await self.get_many([path])
        return node

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Returns the path, which the store completes for a sequential node."""
        [created] = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(created, str)
        return created

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Returns the new version."""
        [new_version] = await self.multi([Set(path, data, version)])
        assert isinstance(new_version, int)
        return new_version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])


def owner_of(node: Node, store: Store) -> Owner:
    """Whose ephemeral node this is, as seen by the client of `store`."""
    if node.owner not in store.sessions:
        return Owner.ANOTHER
    return Owner.THIS_SESSION if node.owner == store.sessions[-1] else Owner.EARLIER_SESSION


def in_batches(ops: Sequence[Op]) -> Iterator[list[Op]]:
    """Atomic writes of a size that every store accepts, in order."""
    batch: list[Op] = []
    size = 0
    for op in ops:
        op_size = OP_BYTES + len(op.path) + (len(op.data) if isinstance(op, Create | Set) else 0)
        if batch and (len(batch) == BATCH_OPS or size + op_size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(op)
        size += op_size
    if batch:
        yield batch
