"""File systems of a test's own: small ones that fill up, and ones that lose power or fail.

Owns the mounts, which end with the test. Needs root; where a machine cannot mount, the test is
skipped with that reason.

`tmpfs`      some memory, with a size
`BlockDisk`  ext4 in a file, through a loop device. What the file system has not written yet is not
             in that file: a copy of it is what a power cut leaves behind. And ext4 can be told to
             fail: from then on every call ends in EIO, until it is mounted anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

SHUT_DOWN: Final = 0x8004587D
"""EXT4_IOC_SHUTDOWN of the kernel's ext4.h: _IOR('X', 125, __u32)."""
WITHOUT_JOURNAL: Final = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: not even the journal is written."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@contextmanager
def tmpfs(path: Path, size: str = "8m") -> Iterator[Path]:
    path.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(folder: Path) -> None:
    """Take every byte that is left, as a careless neighbour would."""
    with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


class BlockDisk:
    """An ext4 file system, mounted at `path` while in its block."""

    def __init__(self, path: Path, size_bytes: int = 64 << 20) -> None:
        self.path = path
        self._image = path.with_name(f"{path.name}.image")
        self._size_bytes = size_bytes
        self._is_mounted = False

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True)
        self._format()
        self._mount()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unmount()
        self._image.unlink(missing_ok=True)

    def cut_power(self) -> None:
        """What was not on the device is gone; its processes must have been killed before."""
        left = self._image.with_suffix(".left")
        shutil.copyfile(self._image, left)
        self._unmount()  # this writes what it had in memory: to the file that is given up
        left.replace(self._image)
        self._mount()

    def fail(self) -> None:
        """Every call ends in EIO from now on."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUT_DOWN, struct.pack("I", WITHOUT_JOURNAL))
        finally:
            os.close(folder)

    def replace(self) -> None:
        """Put an empty disk in its place."""
        self._unmount()
        self._format()
        self._mount()

    def _format(self) -> None:
        with self._image.open("wb") as image:
            image.truncate(self._size_bytes)
        subprocess.run(["mkfs.ext4", "-q", "-F", self._image], check=True, capture_output=True)

    def _mount(self) -> None:
        # The journal is written on request only: what a test did not sync stays in memory.
        command = ["mount", "-o", "loop,commit=300", str(self._image), str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"this machine cannot mount a loop device: {done.stderr.strip()}")
        self._is_mounted = True

    def _unmount(self) -> None:
        if self._is_mounted:
            subprocess.run(["umount", "-l", self.path], check=True)
            self._is_mounted = False
