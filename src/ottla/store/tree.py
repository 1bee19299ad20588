"""The tree itself, and drafts over it. Pure: no disk, no sessions, no watches.

Owns: the meaning of each operation and when it is refused. A `Draft` holds changes to a tree, or to
another draft, without modifying it: discarding the draft undoes them, `merge` applies them. A multi
that fails half-way changes nothing, and a change can be made durable before it is visible.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.store import paths
from ottla.store.port import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    EphemeralParent,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    Result,
    Set,
    StoreError,
)

ROOT: Final = "/"


class Entry(NamedTuple):
    data: bytes
    version: int
    created: int
    owner: int
    """The session of an ephemeral node; otherwise 0."""
    child_changes: int
    """Children created so far, which numbers sequential nodes."""
    modified: int

    def node(self) -> Node:
        return Node(self.data, self.version, self.created, self.owner, self.modified)


class View(Protocol):
    """What a draft needs from its base."""

    @property
    def zxid(self) -> int: ...

    def find(self, path: str) -> Entry | None: ...

    def child_count(self, path: str) -> int: ...


class Tree:
    """The nodes by path, each with the names of its children."""

    def __init__(self, zxid: int = 0) -> None:
        self.zxid = zxid
        self._entries: dict[str, Entry] = {ROOT: Entry(b"", 0, 0, 0, 0, 0)}
        self._children: dict[str, list[str]] = {}
        """Sorted: a controller lists tens of thousands of topics for every few it makes."""

    def copy(self) -> Tree:
        copied = Tree(self.zxid)
        copied.load(self._entries.items())
        return copied

    def find(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def child_count(self, path: str) -> int:
        return len(self._children.get(path, ()))

    def children(self, path: str) -> list[str]:
        if path not in self._entries:
            raise NoNode(path)
        return list(self._children.get(path, ()))

    def owned_by(self, session: int) -> list[str]:
        """The ephemeral nodes of a session, deepest first, in a fixed order."""
        owned = [path for path, entry in self._entries.items() if entry.owner == session]
        return sorted(owned, reverse=True)

    def load(self, entries: Iterable[tuple[str, Entry]]) -> None:
        """Put nodes in as they were; a child may come before its parent."""
        for path, entry in sorted(entries):
            self._put(path, entry)

    def merge(self, draft: Draft) -> None:
        self.zxid = draft.zxid
        for path, entry in draft.entries.items():
            if entry is None:
                self._remove(path)
            else:
                self._put(path, entry)

    def _put(self, path: str, entry: Entry) -> None:
        if path not in self._entries:
            insort(self._children.setdefault(paths.parent(path), []), paths.name(path))
        self._entries[path] = entry

    def _remove(self, path: str) -> None:
        if self._entries.pop(path, None) is None:
            return  # a draft may create and delete the same node
        siblings = self._children[paths.parent(path)]
        del siblings[bisect_left(siblings, paths.name(path))]
        if not siblings:
            del self._children[paths.parent(path)]


class Draft:
    """Changes to a view, and the paths they touch."""

    def __init__(self, base: View) -> None:
        self._base = base
        self.zxid = base.zxid
        self.entries: dict[str, Entry | None] = {}
        self.changed: list[str] = []
        """Nodes created, set or deleted: their data watches fire."""
        self.reparented: list[str] = []
        """Parents that gained or lost a child: their child watches fire."""
        self._child_difference: dict[str, int] = {}

    def apply(self, ops: Sequence[Op], session: int) -> list[Result]:
        """Perform all of `ops` as one write, or raise and leave this draft as it was."""
        attempt = Draft(self)
        attempt.zxid += 1
        results: list[Result] = []
        for index, op in enumerate(ops):
            try:
                results.append(attempt._perform(op, session))
            except StoreError as error:
                error.at = index
                raise
        self.merge(attempt)
        return results

    def merge(self, draft: Draft) -> None:
        self.zxid = draft.zxid
        self.entries.update(draft.entries)
        self.changed += draft.changed
        self.reparented += draft.reparented
        for path, difference in draft._child_difference.items():
            self._child_difference[path] = self._child_difference.get(path, 0) + difference

    def find(self, path: str) -> Entry | None:
        return self.entries[path] if path in self.entries else self._base.find(path)

    def child_count(self, path: str) -> int:
        return self._base.child_count(path) + self._child_difference.get(path, 0)

    def _perform(self, op: Op, session: int) -> Result:
        match op:
            case Create():
                return self._create(op, session)
            case Set():
                entry = self._expect(op.path, op.version)
                self.entries[op.path] = entry._replace(
                    data=op.data, version=entry.version + 1, modified=self.zxid
                )
                self.changed.append(op.path)
                return entry.version + 1
            case Delete():
                self._delete(op)
                return None
            case Check():
                self._expect(op.path, op.version)
                return None

    def _create(self, op: Create, session: int) -> str:
        assert _is_path(op.path), op.path
        parent_path = paths.parent(op.path)
        parent = self.find(parent_path)
        if parent is None:
            raise NoNode(parent_path)
        if parent.owner:
            raise EphemeralParent(parent_path)
        path = f"{op.path}{parent.child_changes:010d}" if op.sequential else op.path
        if self.find(path) is not None:
            raise NodeExists(path)
        self.entries[parent_path] = parent._replace(child_changes=parent.child_changes + 1)
        owner = session if op.ephemeral else 0
        self.entries[path] = Entry(op.data, 0, self.zxid, owner, 0, self.zxid)
        self._record_change(path, parent_path, 1)
        return path

    def _delete(self, op: Delete) -> None:
        self._expect(op.path, op.version)
        if self.child_count(op.path):
            raise NotEmpty(op.path)
        self.entries[op.path] = None
        self._record_change(op.path, paths.parent(op.path), -1)

    def _expect(self, path: str, version: int) -> Entry:
        entry = self.find(path)
        if entry is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, entry.version):
            raise BadVersion(path)
        return entry

    def _record_change(self, path: str, parent: str, difference: int) -> None:
        self.changed.append(path)
        self.reparented.append(parent)
        self._child_difference[parent] = self._child_difference.get(parent, 0) + difference


def _is_path(path: str) -> bool:
    return path.startswith("/") and all(part not in ("", ".", "..") for part in path[1:].split("/"))
