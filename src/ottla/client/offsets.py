"""Offsets as users name them: with metadata, with a time.

Owns the public shapes, and the reading of what a user has committed, by a consumer or within a
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


def given_offsets(offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    """What a user passed, checked."""
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, given in offsets.items():
        full = OffsetAndMetadata(given) if isinstance(given, int) else given
        if full.offset < 0:
            raise UserError(f"offset {full.offset} of {tp}: expected 0 or more")
        checked[tp] = full
    return checked
