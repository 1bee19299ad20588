"""Promises of `ottla.log.slices`."""

from __future__ import annotations

from pathlib import Path

from ottla.log.files import RealDisk
from ottla.log.slices import FileSlice, is_cached


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
    assert is_cached(file.slice(0, 300_000))
    assert is_cached(file.slice(299_999, 1))
