"""Reading the contents of a data directory without changing it.

Owns: reading partitions, ids, offsets and producers from a directory that Apache Kafka (or Ottla)
wrote. Never: writes, locks, or trusts an index. `ottla adopt` plans with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ottla.log import leader_epochs
from ottla.log.directories import meta_properties, partition_metadata
from ottla.log.directories.checkpoint_file import (
    CLEANED_OFFSETS,
    START_OFFSETS,
    BadCheckpoint,
    read_offsets,
)
from ottla.log.directories.directory import CLEAN_SHUTDOWN
from ottla.log.directories.meta_properties import MetaProperties
from ottla.log.directories.names import CLUSTER_METADATA, DirectoryKind, parse
from ottla.log.files import Disk
from ottla.log.index.sparse_index import OffsetIndex
from ottla.log.producers import snapshot_file
from ottla.log.stored_batch import walk_headers, walk_whole
from ottla.model.errors import UserError
from ottla.model.ids import TRANSACTION_STATE, LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import read_records

_TRANSACTION_VALUE: Final = Struct(">hq")  # version, producer id, and more


class FoundPartition(NamedTuple):
    """One partition's directory."""

    partition: TopicPartition
    path: Path
    topic_id: TopicId
    size: int
    start_offset: Offset
    end_offset: Offset
    leader_epoch: LeaderEpoch


class DirectoryContents(NamedTuple):
    """One data directory. `leftovers` are directories that no topic owns, with what they are."""

    path: Path
    meta: MetaProperties
    stopped_cleanly: bool
    partitions: list[FoundPartition]
    compacted: frozenset[str]  # topics that were compacted at some time
    leftovers: dict[str, str]
    largest_producer_id: int


def inspect(path: Path, disk: Disk) -> DirectoryContents:
    """Look at a data directory; UserError when it is none, or when a log in it is unreadable."""
    meta_path = path / meta_properties.FILE_NAME
    if not disk.exists(meta_path):
        raise UserError(f"{path}: not a data directory: no {meta_properties.FILE_NAME} in it")
    meta = MetaProperties.parse(
        disk.read(meta_path).decode("utf-8", "replace"), source=str(meta_path)
    )
    starts = _offsets(disk, path / START_OFFSETS)
    partitions: list[FoundPartition] = []
    leftovers: dict[str, str] = {}
    producer_ids = [-1]
    for name in disk.list(path):
        parsed = parse(name)
        if parsed is None:
            continue
        if parsed.partition == CLUSTER_METADATA:
            leftovers[name] = "the metadata of a KRaft cluster"
        elif parsed.kind is not DirectoryKind.CURRENT:
            leftovers[name] = f"a directory that ends in {parsed.kind.value}"
        else:
            found_partition = _partition(disk, path / name, parsed.partition)
            start = starts.get(parsed.partition, found_partition.start_offset)
            partitions.append(
                found_partition._replace(start_offset=max(start, found_partition.start_offset))
            )
            producer_ids.extend(_producer_ids(disk, found_partition))
    return DirectoryContents(
        path,
        meta,
        disk.exists(path / CLEAN_SHUTDOWN),
        partitions,
        frozenset(partition.topic for partition in _offsets(disk, path / CLEANED_OFFSETS)),
        leftovers,
        max(producer_ids),
    )


def _partition(disk: Disk, path: Path, partition: TopicPartition) -> FoundPartition:
    names = disk.list(path)
    logs = [name for name in names if name.endswith(".log") and name[:-4].isdigit()]
    first, last = (int(logs[0][:-4]), int(logs[-1][:-4])) if logs else (0, 0)
    try:
        history = leader_epochs.read(disk, path)
    except (BadCheckpoint, FileNotFoundError):  # a partition that nobody has led yet has none
        history = None
    return FoundPartition(
        partition,
        path,
        partition_metadata.read(disk, path),
        sum(disk.file_size(path / name) for name in logs),
        first,
        _end_offset(disk, path / logs[-1]) if logs else last,
        LeaderEpoch(-1) if history is None else history.latest,
    )


def _end_offset(disk: Disk, log: Path) -> Offset:
    """The offset after the last whole batch, looked for from the last index entry on."""
    index = log.with_suffix(".index")
    content = disk.read(index) if disk.exists(index) else b""
    whole = content[: len(content) - len(content) % OffsetIndex.ENTRY.size]
    positions = [
        position
        for relative, position in OffsetIndex.ENTRY.iter_unpack(whole)
        if relative or position
    ]
    size = disk.file_size(log)
    for start in (*positions[-1:], 0):
        end = None
        try:
            for batch in walk_headers(disk.open_read(log), start, size):
                end = batch.last_offset + 1
        except CorruptBatch:
            pass  # a torn tail, or an index that points nowhere
        if end is not None:
            return end
    return int(log.stem)


def _producer_ids(disk: Disk, found_partition: FoundPartition) -> Iterator[int]:
    """Ids in use: of producers that write here, or that a transaction coordinator remembers."""
    for name in disk.list(found_partition.path):
        if name.endswith(snapshot_file.SUFFIX):
            try:
                entries = snapshot_file.decode(disk.read(found_partition.path / name))
            except snapshot_file.CorruptSnapshot:
                continue
            yield from (entry.producer_id for entry in entries)
        elif name.endswith(".log") and found_partition.partition.topic == TRANSACTION_STATE:
            yield from _coordinator_producer_ids(disk, found_partition.path / name)


def _coordinator_producer_ids(disk: Disk, log: Path) -> Iterator[int]:
    try:
        for batch, content in walk_whole(disk.open_read(log), 0, disk.file_size(log)):
            if batch.header is None or batch.header.is_control:
                continue
            for record in read_records(content):
                if record.value is not None and len(record.value) >= _TRANSACTION_VALUE.size:
                    yield _TRANSACTION_VALUE.unpack_from(record.value)[1]
    except CorruptBatch:
        return  # a torn tail; recovery deals with it


def _offsets(disk: Disk, path: Path) -> dict[TopicPartition, Offset]:
    try:
        return read_offsets(disk, path)
    except BadCheckpoint:
        return {}
