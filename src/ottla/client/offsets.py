"""Offsets with metadata or a timestamp.

Owns the public types, and the check of offsets that users commit, by a consumer or within a
producer's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next one to read, that is the last one handled plus one."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    """Of the record before `offset`; with it a truncated log is noticed. -1: not known."""


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


Offsets: TypeAlias = Mapping[TopicPartition, int | OffsetAndMetadata]


def checked_offsets(offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets a user passed, as `OffsetAndMetadata`; UserError for a negative one."""
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, offset in offsets.items():
        committed = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        if committed.offset < 0:
            raise UserError(f"{tp}: offset {committed.offset} is negative; expected 0 or more")
        checked[tp] = committed
    return checked
