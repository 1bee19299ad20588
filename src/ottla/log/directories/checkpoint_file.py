"""Small text files that map things to offsets: version, count, then a line for each.

Owns the format of the four checkpoint files of a log directory (`topic partition offset`) and of
`leader-epoch-checkpoint` (`epoch offset`). A file that is torn, cut or garbled is refused whole,
never read in part: what it says can be derived, a wrong number cannot be told from a right one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ottla.log.files import Disk
from ottla.model.ids import Offset, TopicPartition

VERSION: Final = "0"

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
START_OFFSETS: Final = "log-start-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"


class BadCheckpoint(Exception):
    """A checkpoint that is not what was written."""


def encode(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in (VERSION, str(len(lines)), *lines)).encode()


def decode(content: bytes, fields: int) -> list[list[str]]:
    """The words of each line; BadCheckpoint unless all of the file is as it should be."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadCheckpoint("not UTF-8 text") from error
    if not text.endswith("\n"):  # a torn last line could still be a number, and a wrong one
        raise BadCheckpoint("last line is truncated")
    version, *rest = text[:-1].split("\n")
    if version != VERSION:
        raise BadCheckpoint(f"unsupported version {version!r}")
    lines = [line.split(" ") for line in rest[1:]]
    if not rest or rest[0] != str(len(lines)):
        raise BadCheckpoint(f"{len(lines)} entries, expected {rest[0] if rest else 'a count'}")
    if bad := next((line for line in lines if len(line) != fields), None):
        raise BadCheckpoint(f"invalid line {' '.join(bad)!r}")
    return lines


def number(word: str) -> int:
    """A decimal number as we write it, and nothing else that `int` would take."""
    if not word.isascii() or not word.removeprefix("-").isdigit():
        raise BadCheckpoint(f"expected a number, got {word!r}")
    return int(word)


def read_offsets(disk: Disk, path: Path) -> dict[TopicPartition, Offset]:
    """One of the four files of a log directory; empty where there is none."""
    if not disk.exists(path):
        return {}
    lines = decode(disk.read(path), fields=3)
    return {
        TopicPartition(topic, number(partition)): number(offset)
        for topic, partition, offset in lines
    }


def write_offsets(disk: Disk, path: Path, offsets: Mapping[TopicPartition, Offset]) -> None:
    disk.replace(path, encode_offsets(offsets.items()))


def encode_offsets(offsets: Iterable[tuple[TopicPartition, Offset]]) -> bytes:
    return encode([f"{key.topic} {key.partition} {offset}" for key, offset in offsets])
