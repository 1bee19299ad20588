"""Reading dumps in tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.log.dump.dump import dump
from ottla.log.dump.rows import DumpError, DumpOptions, Item, Note, line_of
from ottla.log.files import RealDisk

NAME: Final = "00000000000000000000"
PLAIN: Final = DumpOptions()


def items(path: Path, wishes: DumpOptions = PLAIN) -> list[Item]:
    return list(dump(path, RealDisk(), wishes))


def lines(path: Path, wishes: DumpOptions = PLAIN) -> list[str]:
    return [
        item.text if isinstance(item, Note | DumpError) else line_of(item)
        for item in items(path, wishes)
    ]
