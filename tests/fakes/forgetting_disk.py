"""A disk that keeps its promises and not one more: what was not flushed may be lost in a crash.

Owns a tree of files and folders in memory, each with what the page cache says and what would be
there after a power cut. `crash` decides, from a seed, what became of everything unflushed; `kill`
is the death of the process alone, which loses nothing but open files and locks.

What a crash may do to a file, page by page, from the last synced state on: keep the new bytes,
leave the old ones, leave zeros where there were none, or end the file early. To a folder: keep
any beginning of what happened since it was last synced, in order, as a journal does.

Implements `ottla.log.files.Disk`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

from ottla.log.file_slice import Source
from ottla.log.files import Buffer, File, FileSlice, Lock

PAGE_BYTES: Final = 64  # far smaller than a real page, so that one small batch can tear


class Inode:
    """A file's bytes: `data` in the page cache; on the platter `data[:clean]`, then `stale`."""

    __slots__ = ("clean", "data", "links", "mtime_ms", "stale")

    def __init__(self, mtime_ms: int) -> None:
        self.links = 0
        self.data = bytearray()
        self.clean = 0
        self.stale = b""
        self.mtime_ms = mtime_ms

    def link(self, by: int) -> None:
        self.links += by

    def truncate(self, size: int) -> None:
        if size < self.clean:
            self.stale = bytes(self.data[size : self.clean]) + self.stale
            self.clean = size
        del self.data[size:]

    def sync(self) -> None:
        self.clean = len(self.data)
        self.stale = b""

    def crash(self, dice: Random) -> None:
        self.links = 1  # a name that survived leads here
        if self.clean == len(self.data) and not self.stale:
            return
        old = bytes(self.data[: self.clean]) + self.stale
        self.data = bytearray(_after_crash(old, bytes(self.data), self.clean, dice))
        self.sync()


def _after_crash(old: bytes, new: bytes, clean: int, dice: Random) -> bytes:
    """What is found of a file that was `old` when last synced and `new` in memory."""
    fate = dice.choice(("lose", "keep", "tear", "pages"))
    if fate == "lose":
        return old
    if fate == "keep":
        return new
    if fate == "tear":
        end = dice.randint(clean, max(clean, len(new)))
        return new[:end] + old[end:]
    mixed = bytearray(old[: len(new)].ljust(len(new), b"\0"))
    for start in range(clean - clean % PAGE_BYTES, len(new), PAGE_BYTES):
        if dice.random() < 0.5:
            mixed[start : start + PAGE_BYTES] = new[start : start + PAGE_BYTES]
    return bytes(mixed)


class Folder:
    """Names, and the changes to them since they were last synced, in order."""

    __slots__ = ("_durable", "_pending", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}
        self._durable: dict[str, Node] = {}
        self._pending: list[dict[str, Node | None]] = []

    def change(self, changes: dict[str, Node | None]) -> None:
        """One step that happens whole or not at all; None removes a name."""
        for name, node in changes.items():
            if name in self.entries:
                self.entries[name].link(-1)
            if node is not None:
                node.link(1)
        _apply(self.entries, changes)
        self._pending.append(changes)

    def link(self, by: int) -> None:
        """A folder that is moved or removed takes along what is in it."""
        for node in self.entries.values():
            node.link(by)

    def sync(self) -> None:
        self._durable = dict(self.entries)
        self._pending.clear()

    def crash(self, dice: Random) -> None:
        survived = dice.randint(0, len(self._pending))
        entries = dict(self._durable)
        for changes in self._pending[:survived]:
            _apply(entries, changes)
        self.entries = entries
        self.sync()
        for name in sorted(entries):
            entries[name].crash(dice)


Node: TypeAlias = Inode | Folder


def _apply(entries: dict[str, Node], changes: dict[str, Node | None]) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class _OpenInode:
    """An open file of one life of the process."""

    __slots__ = ("_disk", "_life", "_path", "inode")

    def __init__(self, disk: ForgettingDisk, inode: Inode, path: Path) -> None:
        self._disk = disk
        self._life = disk.life
        self._path = path
        self.inode = inode

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a simulated file has no descriptor")

    def pread(self, size: int, position: int) -> bytes:
        self.check()
        return bytes(self.inode.data[position : position + size])

    def sync(self) -> None:
        self.check()
        self._disk.count_sync(self._path)
        if self._disk.honest:
            self.inode.sync()

    def take_room(self, size: int) -> None:
        self.check()
        self._disk.take_room(size, self._path)

    def check(self) -> None:
        if self._life != self._disk.life:
            raise OSError(errno.EBADF, "this file was open in a process that is gone")


class _ForgettingFile:
    __slots__ = ("_disk", "_open")

    def __init__(self, disk: ForgettingDisk, inode: Inode, path: Path) -> None:
        self._disk = disk
        self._open = _OpenInode(disk, inode, path)

    @property
    def size(self) -> int:
        return len(self._open.inode.data)

    def append(self, buffers: Sequence[Buffer]) -> None:
        content = b"".join(buffers)
        self._open.take_room(len(content))
        self._open.inode.data += content
        self._open.inode.mtime_ms = self._disk.now_ms()

    def pread(self, size: int, position: int) -> bytes:
        return self._open.pread(size, position)

    def slice(self, position: int, size: int) -> FileSlice:
        self._open.check()
        self._disk.slices += 1
        return FileSlice(self._open, position, size)

    def source(self) -> Source:
        return self._open

    def sync(self) -> None:
        self._open.sync()

    def truncate(self, size: int) -> None:
        self._open.check()
        self._open.inode.truncate(size)

    def is_unlinked(self) -> bool:
        return self._open.inode.links == 0

    def close(self) -> None:
        """Nothing to do: an open file is only a reference."""


class _MemoryLock:
    __slots__ = ("_held", "_path")

    def __init__(self, held: set[Path], path: Path) -> None:
        self._held = held
        self._path = path
        held.add(path)

    def release(self) -> None:
        self._held.discard(self._path)


class ForgettingDisk:
    """Files in memory with a seed for every misfortune.

    `capacity_bytes` makes writes fail with ENOSPC beyond it; `sync_error` makes every sync fail;
    below `failed_directory` every write and sync fails; a disk that is not `honest` says that files
    were synced and does nothing.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.life = 0
        self.slices = 0
        """How often a part of a file was read for a reply."""
        self.syncs = 0
        self.written_bytes = 0
        self.capacity_bytes: int | None = None
        self.sync_error: OSError | None = None
        self.failed_directory: Path | None = None
        self.honest = True
        self._root = Folder()
        self._locks: set[Path] = set()

    # Misfortunes

    def crash(self, seed: int) -> None:
        """The power goes: what was not synced is kept, lost, torn or zeroed, as the seed says."""
        self.kill()
        self._root.crash(Random(seed))

    def kill(self) -> None:
        """The process dies: open files and locks are gone, every byte is still there."""
        self.life += 1
        self._locks.clear()

    def sync_everything(self) -> None:
        """As a long quiet time would: for tests that begin with durable files."""
        folders = [self._root]
        while folders:
            folder = folders.pop()
            folder.sync()
            for node in folder.entries.values():
                if isinstance(node, Folder):
                    folders.append(node)
                else:
                    node.sync()

    def wipe(self) -> None:
        """Somebody puts in an empty disk."""
        self.kill()
        self._root = Folder()

    def flip_bit(self, path: Path) -> None:
        """Damage in the middle of a file, which those who have it open read as well."""
        data = self._inode(path).data
        data[len(data) // 2] ^= 1

    @property
    def is_broken(self) -> bool:
        faults = (self.sync_error, self.capacity_bytes, self.failed_directory)
        return any(fault is not None for fault in faults)

    def mend(self) -> None:
        self.sync_error = self.capacity_bytes = self.failed_directory = None

    def count_sync(self, path: Path) -> None:
        self.syncs += 1
        if self.sync_error is not None:
            raise self.sync_error
        self._check_directory(path)

    def _check_directory(self, path: Path) -> None:
        if self.failed_directory is not None and path.is_relative_to(self.failed_directory):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    def take_room(self, size: int, path: Path) -> None:
        self._check_directory(path)
        if self.capacity_bytes is not None and self.written_bytes + size > self.capacity_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.written_bytes += size

    # Files

    def open_append(self, path: Path) -> File:
        folder = self._folder(path.parent)
        node = folder.entries.get(path.name)
        if node is None:
            node = Inode(self.now_ms())
            folder.change({path.name: node})
        return _ForgettingFile(self, _file(node, path), path)

    def open_read(self, path: Path) -> File:
        return _ForgettingFile(self, self._inode(path), path)

    def read(self, path: Path) -> bytes:
        return bytes(self._inode(path).data)

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None:
        self.take_room(len(content), path)
        inode = Inode(self.now_ms())
        inode.data += content
        if sync:
            self.count_sync(path)
            inode.sync()
        folder = self._folder(path.parent)
        temporary = path.name + ".tmp"
        folder.change({temporary: inode})
        folder.change({temporary: None, path.name: inode})
        if sync:
            folder.sync()

    def rename(self, old: Path, new: Path) -> None:
        self._check_directory(new)
        source, target = self._folder(old.parent), self._folder(new.parent)
        node = source.entries.get(old.name)
        if node is None:
            raise _missing(old)
        if source is target:
            source.change({old.name: None, new.name: node})
        else:
            target.change({new.name: node})
            source.change({old.name: None})

    def remove(self, path: Path) -> None:
        folder = self._folder(path.parent)
        if path.name in folder.entries:
            folder.change({path.name: None})

    def remove_tree(self, path: Path) -> None:
        if self.exists(path):
            self._folder(path.parent).change({path.name: None})

    def mkdir(self, path: Path) -> None:
        self._check_directory(path)
        folder = self._root
        for name in _names(path):
            node = folder.entries.get(name)
            if node is None:
                node = Folder()
                folder.change({name: node})
            if not isinstance(node, Folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            folder = node

    def sync_dir(self, path: Path) -> None:
        self.count_sync(path)
        self._folder(path).sync()

    def list(self, path: Path) -> list[str]:
        return sorted(self._folder(path).entries)

    def exists(self, path: Path) -> bool:
        try:
            return path.name in self._folder(path.parent).entries
        except FileNotFoundError:
            return False

    def identity(self, path: Path) -> tuple[int, int]:
        return 0, id(self._folder(path))

    def file_size(self, path: Path) -> int:
        return len(self._inode(path).data)

    def mtime_ms(self, path: Path) -> int:
        return self._inode(path).mtime_ms

    def free_bytes(self, path: Path) -> int:
        return self.total_bytes(path) - self.written_bytes

    def total_bytes(self, path: Path) -> int:
        self._folder(path)
        return 1 << 40 if self.capacity_bytes is None else self.capacity_bytes

    def lock(self, path: Path) -> Lock:
        if path in self._locks:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(path))
        self.open_append(path)
        return _MemoryLock(self._locks, path)

    def _folder(self, path: Path) -> Folder:
        node: Node = self._root
        for name in _names(path):
            found = node.entries.get(name) if isinstance(node, Folder) else None
            if found is None:
                raise _missing(path)
            node = found
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return node

    def _inode(self, path: Path) -> Inode:
        node = self._folder(path.parent).entries.get(path.name)
        if node is None:
            raise _missing(path)
        return _file(node, path)


def _names(path: Path) -> tuple[str, ...]:
    return path.parts[1:] if path.is_absolute() else path.parts


def _file(node: Node, path: Path) -> Inode:
    if not isinstance(node, Inode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return node


def _missing(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
