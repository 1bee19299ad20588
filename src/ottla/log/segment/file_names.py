"""What the files of one segment are called, and renaming or removing them together.

Owns the suffixes. The `.log` always goes last: it decides whether the segment exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.log.segment.indexes import INDEX, TIME_INDEX
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from ottla.log.segment.segment import Segment

LOG: Final = ".log"
TXN_INDEX: Final = ".txnindex"
SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)


def file_name(base_offset: Offset, kind: str) -> str:
    """The name all files of a segment share: its base offset in twenty digits."""
    return f"{base_offset:020d}{kind}"


def rename(segment: Segment, suffix: str) -> None:
    """Give all its files another suffix. It can be read under the new names."""
    segment.release()
    for kind in reversed(SUFFIXES):
        old = segment.path(kind)
        if segment.disk.exists(old):
            new = segment.dir / (file_name(segment.base_offset, kind) + suffix)
            segment.disk.rename(old, new)
    segment.suffix = suffix


def delete(segment: Segment) -> None:
    """Remove its files; what is being sent from them can still be sent."""
    segment.release(write=False)
    for kind in reversed(SUFFIXES):
        segment.disk.remove(segment.path(kind))


def sync_data(segment: Segment) -> None:
    segment.file().sync()


def sync_indexes(segment: Segment) -> None:
    segment.indexes().sync()
