"""One log directory: its lock, its identity, its checkpoints and its clean-shutdown marker.

Owns: everything in a log directory that is not a partition. Never: opens a partition.

Order of durability: the marker is written last, after every log has been flushed and every
checkpoint written, and its removal at start is durable before anything is appended. A power cut
in between can therefore make a clean stop look unclean, never the other way round.
"""

from __future__ import annotations

import errno
import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ottla.log.directories import meta_properties
from ottla.log.directories.checkpoint_file import BadCheckpoint, encode_offsets, read_offsets
from ottla.log.directories.meta_properties import MetaProperties
from ottla.log.directories.names import CLUSTER_METADATA, DirectoryKind, DirectoryName, parse
from ottla.log.files import Disk, Lock
from ottla.model.errors import UserError
from ottla.model.ids import Offset, TopicPartition

logger = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
WRITE_CHECK: Final = ".write-check"
WRITE_CHECK_BYTES: Final = 65_536
"""A disk with less room than this cannot hold a segment and its indexes."""


class CheckpointWrite(NamedTuple):
    """A checkpoint whose numbers were taken; `run` waits for the disk, on any thread."""

    directory: LogDirectory
    name: str
    number: int
    offsets: Mapping[TopicPartition, Offset]

    def run(self) -> None:
        """Return once these numbers, or newer ones of that name, are on the disk."""
        self.directory.write_checkpoint(self)


class LogDirectory:
    """A log directory. `failure` is why it is offline, and None while it is not."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self.disk = disk
        self.meta = MetaProperties(None, None)
        self.failure: str | None = None
        self.lost_logs: dict[TopicPartition, Offset] = {}
        """Partitions that had records here, as the checkpoints say, and whose directory is gone."""
        self._newest: dict[str, CheckpointWrite] = {}
        self._written: dict[str, int] = {}
        self._writing = threading.Lock()
        """Several threads write checkpoints, each through the same temporary file."""
        self._offsets: dict[str, Mapping[TopicPartition, Offset]] = {}
        self._lock: Lock | None = None
        self._identity: tuple[int, int] | None = None

    @property
    def online(self) -> bool:
        return self.failure is None

    def open(self) -> None:
        """Take the directory for this process, making it if need be, and read who it is."""
        made = [one for one in (self.path, *self.path.parents) if not self.disk.exists(one)]
        self.disk.mkdir(self.path)
        for one in made:
            self.disk.sync_dir(one.parent)  # or a power cut takes the whole directory
        try:
            self._lock = self.disk.lock(self.path / LOCK_FILE)
        except BlockingIOError:
            raise UserError(f"{self.path}: another process is using this data directory") from None
        self._identity = self.disk.identity(self.path)
        self._check_writable()
        path = self.path / meta_properties.FILE_NAME
        if self.disk.exists(path):
            text = self.disk.read(path).decode("utf-8", "replace")
            self.meta = MetaProperties.parse(text, source=str(path))

    def _check_writable(self) -> None:
        """Write and sync a file, and remove it again: an OSError now, not at the first record."""
        path = self.path / WRITE_CHECK
        try:
            self.disk.replace(path, bytes(WRITE_CHECK_BYTES))
        finally:
            with suppress(OSError):
                for name in (path, path.with_name(path.name + ".tmp")):
                    self.disk.remove(name)

    def check_in_place(self) -> None:
        """An OSError when the path leads to another directory than the one opened, or to none.

        Some file systems give a directory a new number now and then, so that alone is no proof.
        """
        moved = self.disk.identity(self.path) != self._identity
        if moved and not self.disk.exists(self.path / meta_properties.FILE_NAME):
            reason = "the directory was replaced while the broker was running"
            raise FileNotFoundError(errno.ENOENT, reason, str(self.path))

    def claim(self, meta: MetaProperties) -> None:
        """Write meta.properties, unless it has these contents already."""
        if meta != self.meta:
            path = self.path / meta_properties.FILE_NAME
            self.disk.replace(path, meta.text().encode())
            self.meta = meta

    def sync(self) -> None:
        """Make durable which partitions are in here; waits for the disk, on any thread."""
        self.disk.sync_dir(self.path)

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def partitions(self) -> dict[str, DirectoryName]:
        """The partition directories in here, by name; anything else is left alone."""
        partitions: dict[str, DirectoryName] = {}
        for name in self.disk.list(self.path):
            named = parse(name)
            if named is None or named.partition == CLUSTER_METADATA:
                continue
            if named.kind is not DirectoryKind.STRAY:
                partitions[name] = named
        return partitions

    def offsets(self, name: str) -> Mapping[TopicPartition, Offset]:
        """One of the four checkpoints, as it was last written or taken to be written.

        The values of a damaged one are read from the logs.
        """
        if name not in self._offsets:
            try:
                self._offsets[name] = read_offsets(self.disk, self.path / name)
            except BadCheckpoint as fault:
                logger.warning(
                    "%s: ignoring invalid checkpoint, reading the logs instead: %s",
                    self.path / name,
                    fault,
                )
                self._offsets[name] = {}
        return self._offsets[name]

    def checkpoint(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> CheckpointWrite:
        """Take these numbers; they are in the file when what is returned has been run."""
        self._offsets[name] = offsets
        before = self._newest.get(name)
        number = 1 if before is None else before.number + 1
        write = self._newest[name] = CheckpointWrite(self, name, number, offsets)
        return write

    def write_checkpoint(self, write: CheckpointWrite) -> None:
        """Write the newest numbers of that name, if this one's or newer ones are not written yet.

        One at a time: an older write never replaces a newer one.
        """
        with self._writing:
            if self._written.get(write.name, 0) < write.number:
                newest = self._newest[write.name]
                content = encode_offsets(sorted(newest.offsets.items()))
                self.disk.replace(self.path / write.name, content)
                self._written[write.name] = newest.number

    @property
    def was_stopped_cleanly(self) -> bool:
        return self.disk.exists(self.path / CLEAN_SHUTDOWN)

    def mark_clean(self, broker_epoch: int) -> None:
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self.disk.replace(self.path / CLEAN_SHUTDOWN, content.encode())

    def unmark_clean(self) -> None:
        """Before the first append: from here on a stop is unclean until proven otherwise."""
        if self.was_stopped_cleanly:
            self.disk.remove(self.path / CLEAN_SHUTDOWN)
            self.disk.sync_dir(self.path)
