"""Progress of pip, from the lines that pip prints.

Owns: parsing pip's lines, and how progress is printed: one line that is redrawn on a terminal, a
line now and then elsewhere. Needs no package. Never: runs pip.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

LARGE_BYTES: Final = 20_000_000
"""A download of this size is worth a line of its own."""
STEP: Final = 20
"""So many packages are worth a line where lines stay."""
QUIET_S: Final = 30.0
"""After this long without a line, one is printed."""
COLUMNS: Final = 78
_UNITS: Final = {"bytes": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_COLLECTING: Final = re.compile(r"^Collecting ([^\s=<>!~;\[]+)")
_DOWNLOADING: Final = re.compile(r"^\s*Downloading (\S+) \(([\d.]+) (bytes|[kMG]B)\)")
_BUILDING: Final = re.compile(r"^\s*Building wheel for (\S+) .*started")
_INSTALLING: Final = re.compile(r"^Installing collected packages: (.*)")


@dataclass(frozen=True)
class Progress:
    """What pip has done so far."""

    total: int
    packages: int = 0
    bytes: int = 0
    doing: str = "looking"
    large: bool = False
    """What it does now takes long."""

    def add_line(self, line: str) -> Progress:
        """The same after another line of pip's."""
        if found := _COLLECTING.match(line):
            count = self.packages + 1
            return replace(self, packages=count, doing=found[1], large=False)
        if found := _DOWNLOADING.match(line):
            size = int(float(found[2]) * _UNITS[found[3]])
            name = found[1].rsplit("/", 1)[-1].split("-")[0]
            doing = f"downloading {name} ({found[2]} {found[3]})"
            return replace(self, bytes=self.bytes + size, doing=doing, large=size >= LARGE_BYTES)
        if found := _BUILDING.match(line):
            return replace(self, doing=f"unpacking {found[1]}", large=True)
        if found := _INSTALLING.match(line):
            count = len(found[1].split(", "))
            doing = f"installing {count} packages"
            return replace(self, packages=count, total=count, doing=doing, large=True)
        return self

    def line(self, seconds: float) -> str:
        """The progress as one line."""
        loaded = f", {self.bytes / 1e6:,.0f} MB" if self.bytes else ""
        count = f"{self.packages} of {max(self.total, self.packages)} packages"
        return f"setup: {count}{loaded}, {seconds:.0f} s: {self.doing}"


class ProgressDisplay:
    """Prints the progress."""

    def __init__(self, total: int, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._changes = out.isatty()
        self._progress = Progress(total)
        self._printed_at = 0.0
        self._printed = 0

    def add_line(self, line: str | None, seconds: float) -> None:
        """Another line of pip's, or none for a while; so many seconds after the beginning."""
        before = self._progress
        if line is not None:
            self._progress = before.add_line(line)
        now = self._progress
        text = now.line(seconds)
        if self._changes:
            self._out.write(f"\r{text[:COLUMNS]:<{COLUMNS}}")
            self._out.flush()
        elif (
            (now.large and now != before)
            or now.packages - self._printed >= STEP
            or seconds - self._printed_at >= QUIET_S
        ):
            print(text, file=self._out, flush=True)
            self._printed, self._printed_at = now.packages, seconds

    def over(self) -> None:
        """The line that changed is left, empty."""
        if self._changes:
            self._out.write(f"\r{'':<{COLUMNS}}\r")
            self._out.flush()


def packages_of(lock: Path) -> int:
    """How many packages a lock file names: as many as there can be, for not all suit a machine."""
    return sum(line[:1].isalnum() for line in lock.read_text().splitlines())
