"""Promises of `ottla.log.file_slice`."""

from __future__ import annotations

import os
from pathlib import Path

from ottla.log.file_slice import FileSlice
from ottla.log.files import RealDisk


class Trickle:
    """A file that gives at most three bytes at a time."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def fileno(self) -> int:
        raise OSError

    def pread(self, size: int, position: int) -> bytes:
        return self.content[position : position + min(size, 3)]

    def sync(self) -> None: ...


def test_reading_goes_on_until_all_of_it_is_there() -> None:
    assert FileSlice(Trickle(b"0123456789"), 1, 8).read() == b"12345678"


def test_a_file_cut_meanwhile_gives_what_is_left() -> None:
    assert FileSlice(Trickle(b"0123"), 2, 8).read() == b"23"
    assert FileSlice(Trickle(b""), 2, 8).read() == b""


def test_what_was_just_written_is_in_memory(tmp_path: Path) -> None:
    file = RealDisk().open_append(tmp_path / "a")
    file.append([b"x" * 300_000])
    assert file.slice(0, 300_000).is_cached()
    assert file.slice(299_999, 1).is_cached()


def test_pages_that_were_dropped_are_missed_until_they_are_warmed(tmp_path: Path) -> None:
    file = RealDisk().open_append(tmp_path / "a")
    file.append([b"x" * 3_000_000])
    file.sync()
    part = file.slice(1_000, 2_900_000)
    os.posix_fadvise(part.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        os.preadv(part.fileno(), [bytearray(1)], 1_000, os.RWF_NOWAIT)
    except BlockingIOError:
        assert not part.is_cached()
        part.warm()
        assert part.is_cached()
    except OSError:
        assert part.is_cached(), "the file system cannot tell"
    else:
        assert part.is_cached(), "the file system keeps its pages"


def test_a_file_without_a_descriptor_counts_as_being_in_memory() -> None:
    part = FileSlice(Trickle(b"0123456789"), 0, 10)
    assert part.is_cached()
    part.warm()


def test_a_file_cut_meanwhile_is_warmed_as_far_as_it_goes() -> None:
    FileSlice(Trickle(b"0123"), 2, 8).warm()
