"""Completing or undoing interrupted segment swaps before a partition is loaded.

Owns the meaning of `.deleted`, `.cleaned`, `.swap` and `.tmp`. Never opens a finished segment.
Every step can be repeated: a crash in the middle of this is an ordinary case of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.log.files import Disk
from ottla.log.segment.segment import LOG, SUFFIXES, Segment, file_name
from ottla.log.segment.segment_end import load_end
from ottla.log.segment_deletion import CLEANED, DELETED, SWAP
from ottla.model.ids import Offset

TEMPORARY: Final = ".tmp"


def complete_interrupted_operations(disk: Disk, dir: Path) -> list[str]:
    """Finish or undo, and the names of the files that are left."""
    names = disk.list(dir)
    if not any(name.endswith((DELETED, CLEANED, SWAP, TEMPORARY)) for name in names):
        return names
    _drop_unfinished(disk, dir, names)
    swaps = [name for name in disk.list(dir) if name.endswith(SWAP)]
    if swaps:
        _complete(disk, dir, swaps)
    disk.sync_dir(dir)
    return disk.list(dir)


def base_offset_of(name: str) -> Offset | None:
    """The base offset of a segment's file, whatever its suffixes; None for other files."""
    stem, dot, kind = name.partition(".")
    return int(stem) if dot and kind and len(stem) == 20 and stem.isdigit() else None


def _drop_unfinished(disk: Disk, dir: Path, names: list[str]) -> None:
    """Undo a swap whose files were not all renamed; delete files marked for deletion."""
    cleaned = [base_offset_of(name) for name in names if name.endswith(CLEANED)]
    first_cleaned = min((base for base in cleaned if base is not None), default=None)
    for name in names:
        base = base_offset_of(name)
        undone = (
            name.endswith(SWAP)
            and base is not None
            and first_cleaned is not None
            and base >= first_cleaned
        )
        # The swap's own files first: while a `.cleaned` is left, the next start undoes it too.
        if undone or name.endswith((DELETED, TEMPORARY)):
            disk.remove(dir / name)
    disk.sync_dir(dir)
    for name in names:
        if name.endswith(CLEANED):
            disk.remove(dir / name)


def _complete(disk: Disk, dir: Path, swaps: list[str]) -> None:
    """Complete a swap: delete the replaced segments, rename the new ones."""
    ranges = [
        _range(disk, dir, name)
        for name in swaps
        if name.endswith(LOG + SWAP) and base_offset_of(name) is not None
    ]
    for name in disk.list(dir):
        base = base_offset_of(name)
        if base is None or name not in _file_names(base):
            continue
        if any(start <= base < end for start, end in ranges):
            disk.remove(dir / name)
    disk.sync_dir(dir)
    for name in sorted(swaps, key=lambda name: not name.endswith(LOG + SWAP)):
        disk.rename(dir / name, dir / name.removesuffix(SWAP))


def _file_names(base: Offset) -> list[str]:
    return [file_name(base, kind) for kind in SUFFIXES]


def _range(disk: Disk, dir: Path, name: str) -> tuple[Offset, Offset]:
    base = base_offset_of(name)
    assert base is not None
    segment = Segment(disk, dir, base, size=disk.file_size(dir / name), suffix=SWAP)
    end = max(base + 1, load_end(segment).offset)
    segment.release()
    return base, end
