"""Everything the broker does to a disk: the only open, write, fsync, rename and remove.

Owns open descriptors and the order in which things become durable. Never knows what a segment or
an index is, and never looks at a clock.

Order of durability, relied on by recovery and tested with a disk that forgets:

1. A write is in the page cache only. It is durable once `sync` of its file has returned.
2. Creating, renaming or removing a file is durable once `sync_dir` of its directory has returned;
   its contents are a separate matter (1).
3. `replace` writes a new file, syncs, renames, syncs the directory: after a crash the file has the
   old content or the new. With `sync=False` it may hold anything, so only content that is
   checked when it is read (and can be derived again) is written that way.
4. A recovery point moves only after the data below it, the indexes and snapshots of every closed
   segment below it, the leader epochs and the directory itself are durable (`flush.begin_flush`).
5. After a failed sync the kernel may have dropped the pages and forgotten the error: nothing here
   retries one; the directory is given up.

At most `limit` descriptors are open (10,000 partitions have 30,000 files): a file reopens itself
on use, and one that was not used lately is closed. A `FileSlice` keeps its descriptor open for as
long as it is referred to, so neither eviction nor deletion breaks a reply that is being sent.
When the process has no descriptor left for a file, or the kernel no memory, some files that are
held are closed, and those that are kept for this (`OpenFiles.reserve`); then it is tried once more.
`OutOfResources` says nothing about the disk: nothing was changed, and it may be tried again later.
A write or a sync that fails is never that: `SHORTAGES` are told apart only where files are opened,
made, renamed and removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit
from typing import Final, Protocol, TypeVar

from ottla.log.file_slice import Buffer, FileSlice, Source

__all__ = ["Buffer", "Disk", "File", "FileSlice", "Lock", "OutOfResources", "RealDisk"]

Result = TypeVar("Result")

OPEN_FILES_LIMIT: Final = 2_000
CLOSED_AT_ONCE: Final = 16
"""Files closed when there is no descriptor: few, since new connections take what is free."""
COPY_BYTES: Final = 1 << 20


SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR})
"""Errors that pass: no descriptor in the process or the system, no memory, interrupted."""


class OutOfResources(OSError):
    """A file could not be opened, made, renamed or removed for lack of descriptors or memory.

    Not a fault of the disk: what was asked for is refused, and the directory stays online.
    """

    @classmethod
    def of(cls, error: OSError) -> OutOfResources:
        reason = error.strerror
        if error.errno == errno.EMFILE:
            limit, _ = getrlimit(RLIMIT_NOFILE)
            reason = f"{reason} (at most {limit} file descriptors, see ulimit -n)"
        return cls(error.errno, reason, error.filename)


class File(Protocol):
    """One file. `append` is all or nothing: on an error the file is cut back to what it was."""

    @property
    def size(self) -> int: ...

    def append(self, buffers: Sequence[Buffer]) -> None: ...

    def pread(self, size: int, position: int) -> bytes: ...

    def slice(self, position: int, size: int) -> FileSlice: ...

    def source(self) -> Source: ...

    def sync(self) -> None: ...

    def truncate(self, size: int) -> None: ...

    def is_unlinked(self) -> bool:
        """Whether it is open though no name leads to it any more: what is written is lost."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    """A directory locked by this process until it is released."""

    def release(self) -> None: ...


class Disk(Protocol):
    """What the log needs of a file system."""

    def open_append(self, path: Path) -> File: ...

    def open_read(self, path: Path) -> File: ...

    def read(self, path: Path) -> bytes: ...

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None: ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None: ...

    def remove_tree(self, path: Path) -> None: ...

    def mkdir(self, path: Path) -> None: ...

    def sync_dir(self, path: Path) -> None: ...

    def list(self, path: Path) -> list[str]: ...

    def exists(self, path: Path) -> bool: ...

    def identity(self, path: Path) -> tuple[int, int]:
        """Device and inode: differ for another file or directory of the same name."""
        ...

    def file_size(self, path: Path) -> int: ...

    def mtime_ms(self, path: Path) -> int: ...

    def free_bytes(self, path: Path) -> int: ...

    def total_bytes(self, path: Path) -> int: ...

    def lock(self, path: Path) -> Lock: ...


class Handle:
    """An open descriptor; closed with its last reference."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def fileno(self) -> int:
        return self.fd

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self.fd, size, position)

    def sync(self) -> None:
        os.fdatasync(self.fd)

    def __del__(self) -> None:
        os.close(self.fd)


class OpenFiles:
    """The files that hold a descriptor; the one that was used least lately gives way."""

    __slots__ = ("_files", "_reserve", "_reserve_size", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._files: OrderedDict[RealFile, None] = OrderedDict()
        self._reserve: list[Handle] = []
        self._reserve_size = 0

    def __len__(self) -> int:
        return len(self._files)

    def reserve(self, count: int) -> None:
        """Keep so many descriptors for when the process has no other: replies that are being sent
        may hold all the rest, and a log that cannot be made or deleted takes its replica offline.
        """
        self._reserve_size = count
        del self._reserve[count:]
        self._refill_reserve()

    def _refill_reserve(self) -> None:
        try:
            while len(self._reserve) < self._reserve_size:
                self._reserve.append(Handle(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)))
        except OSError:
            return  # none is free: later

    def hold(self, file: RealFile) -> None:
        """Second chance: a file used since it was last looked at goes to the back of the row.

        A new one starts at the back as unused: if it counted as used, opening many files once would
        evict the one that is in constant use.
        """
        while len(self._files) >= self.limit and (oldest := self._oldest()) is not None:
            if oldest.used:
                oldest.used = False
                self._files[oldest] = None
            else:
                oldest.handle = None
        file.used = False
        self._files[file] = None
        if len(self._reserve) < self._reserve_size:
            self._refill_reserve()

    def drop(self, file: RealFile) -> None:
        self._files.pop(file, None)

    def opening(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, which opens files or changes names; tried twice in a shortage."""
        try:
            return work()
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
        self._close_some()
        self._reserve.clear()
        try:
            return work()
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            raise OutOfResources.of(error) from None
        finally:
            self._refill_reserve()

    def _close_some(self) -> None:
        for _ in range(CLOSED_AT_ONCE):
            oldest = self._oldest()
            if oldest is None:
                return
            oldest.handle = None

    def _oldest(self) -> RealFile | None:
        """Taken out; None if there is none, for another thread may close some meanwhile."""
        try:
            return self._files.popitem(last=False)[0]
        except KeyError:
            return None


class RealFile:
    """A file of the operating system, open only while it is in use."""

    __slots__ = ("_flags", "_open_files", "_path", "_size", "handle", "used")

    def __init__(self, path: Path, flags: int, open_files: OpenFiles) -> None:
        self._path = path
        self._flags = flags
        self._open_files = open_files
        self.handle: Handle | None = None
        self.used = False
        self._size = os.fstat(self.opened().fd).st_size

    @property
    def size(self) -> int:
        return self._size

    def opened(self) -> Handle:
        handle = self.handle
        if handle is None:
            handle = self._open_files.opening(self._open)
            self._flags &= ~os.O_CREAT  # a file that was deleted must not come back empty
            self.handle = handle
            self._open_files.hold(self)
        else:
            self.used = True
        return handle

    def _open(self) -> Handle:
        return Handle(os.open(self._path, self._flags, 0o644))

    def append(self, buffers: Sequence[Buffer]) -> None:
        handle = self.handle
        if handle is None:
            handle = self.opened()
        self.used = True
        expected = 0
        for buffer in buffers:
            expected += len(buffer)
        try:
            written = os.writev(handle.fd, buffers)
            if written != expected:
                self._append_rest(handle.fd, b"".join(buffers)[written:])
        except OSError:
            os.ftruncate(handle.fd, self._size)
            raise
        self._size += expected

    def _append_rest(self, fd: int, rest: bytes) -> None:
        """A short write is either one larger than the kernel takes at once, or a full disk."""
        while rest:
            written = os.write(fd, rest)
            if written == 0:
                raise OSError(errno.ENOSPC, "disk accepted no more bytes", str(self._path))
            rest = rest[written:]

    def pread(self, size: int, position: int) -> bytes:
        # Through the handle: it stays open for the call, though another thread may drop ours.
        return self.opened().pread(size, position)

    def slice(self, position: int, size: int) -> FileSlice:
        return FileSlice(self.opened(), position, size)

    def source(self) -> Source:
        """The open file itself, which stays open (and can be synced) while it is referred to."""
        return self.opened()

    def sync(self) -> None:
        self.opened().sync()

    def truncate(self, size: int) -> None:
        os.ftruncate(self.opened().fd, size)
        self._size = size

    def is_unlinked(self) -> bool:
        handle = self.handle
        if handle is None:
            return False  # opening it again will fail
        return os.fstat(handle.fd).st_nlink == 0

    def close(self) -> None:
        self._open_files.drop(self)
        self.handle = None


class DirectoryLock:
    """flock on a file: gone when the process is, however it ended."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle: Handle | None = handle

    def release(self) -> None:
        self._handle = None


class RealDisk:
    """The operating system's files."""

    def __init__(self, open_files_limit: int = OPEN_FILES_LIMIT) -> None:
        self.open_files = OpenFiles(open_files_limit)

    def open_append(self, path: Path) -> File:
        """Open for appending and reading, made if it is not there."""
        return RealFile(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, self.open_files)

    def open_read(self, path: Path) -> File:
        return RealFile(path, os.O_RDONLY | os.O_CLOEXEC, self.open_files)

    def read(self, path: Path) -> bytes:
        return self.open_files.opening(path.read_bytes)

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None:
        temporary = path.with_name(path.name + ".tmp")
        with self.open_files.opening(lambda: temporary.open("wb")) as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        self.rename(temporary, path)
        if sync:
            self.sync_dir(path.parent)

    def rename(self, old: Path, new: Path) -> None:
        self.open_files.opening(lambda: old.replace(new))

    def remove(self, path: Path) -> None:
        self.open_files.opening(lambda: path.unlink(missing_ok=True))

    def remove_tree(self, path: Path) -> None:
        if path.exists():
            self.open_files.opening(lambda: shutil.rmtree(path))

    def mkdir(self, path: Path) -> None:
        self.open_files.opening(lambda: path.mkdir(parents=True, exist_ok=True))

    def sync_dir(self, path: Path) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        handle = self.open_files.opening(lambda: Handle(os.open(path, flags)))
        os.fsync(handle.fd)

    def list(self, path: Path) -> list[str]:
        with self.open_files.opening(lambda: os.scandir(path)) as entries:
            return sorted(entry.name for entry in entries)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def identity(self, path: Path) -> tuple[int, int]:
        found = path.stat()
        return found.st_dev, found.st_ino

    def file_size(self, path: Path) -> int:
        return path.stat().st_size

    def mtime_ms(self, path: Path) -> int:
        return path.stat().st_mtime_ns // 1_000_000

    def free_bytes(self, path: Path) -> int:
        return shutil.disk_usage(path).free

    def total_bytes(self, path: Path) -> int:
        return shutil.disk_usage(path).total

    def lock(self, path: Path) -> Lock:
        """BlockingIOError if another process holds it, or another broker in this process.

        Two kinds of lock, because they do not see each other: `lockf` is what Apache Kafka takes,
        `flock` is what keeps two holders within one process apart.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        handle = self.open_files.opening(lambda: Handle(os.open(path, flags, 0o644)))
        fcntl.flock(handle.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(handle.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return DirectoryLock(handle)


def sync_path(disk: Disk, path: Path) -> None:
    """Sync a file that was written and closed."""
    file = disk.open_read(path)
    file.sync()
    file.close()


def copy_range(disk: Disk, source: File, start: int, target: Path) -> None:
    """Copy everything from `start` on into `target`, durably: all of it is there, or no file."""
    temporary = target.with_name(target.name + ".tmp")
    disk.remove(temporary)
    copy = disk.open_append(temporary)
    for position in range(start, source.size, COPY_BYTES):
        copy.append([source.pread(COPY_BYTES, position)])
    copy.sync()
    copy.close()
    disk.rename(temporary, target)
    disk.sync_dir(target.parent)
