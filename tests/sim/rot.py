"""Damage to files that hold nothing of their own: what they say can be found out again.

Each is lost, cut short, filled with noise or has one bit turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from ottla.log.index.txn_index import ENTRY
from tests.fakes.forgetting_disk import ForgettingDisk

DERIVED: Final = (
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
LIKELIHOOD: Final = 0.3


def rot(disk: ForgettingDisk, directories: Sequence[Path], dice: Random) -> list[str]:
    """Damage some of the derived files; which, and how."""
    damaged = []
    for path in _files(disk, directories):
        if path.name.endswith(DERIVED) and dice.random() < LIKELIHOOD:
            damaged.append(f"{path}:{_damage(disk, path, dice)}")
    return damaged


def _files(disk: ForgettingDisk, directories: Sequence[Path]) -> list[Path]:
    found = []
    for directory in directories:
        for name in disk.list(directory):
            path = directory / name
            try:
                found += [path / inner for inner in disk.list(path)]
            except NotADirectoryError:
                found.append(path)
    return found


def _damage(disk: ForgettingDisk, path: Path, dice: Random) -> str:
    content = bytearray(disk.read(path))
    how = dice.choice(["lost", "cut", "noise", "bit"])
    if how == "lost" or not content:
        disk.remove(path)
        return "lost"
    if how == "cut":
        left = dice.randrange(len(content))
        if path.suffix == ".txnindex" and left % ENTRY.size == 0:
            left += 1  # where an entry ends, nothing tells a cut index from a shorter one
        del content[left:]
    elif how == "noise":
        content = bytearray(dice.randbytes(len(content)))
    else:
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    disk.replace(path, bytes(content))
    return how
