"""What a log answers to an append and to a read."""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.file_slice import FileSlice
from ottla.model.ids import Offset


class Appended(NamedTuple):
    """Where an append went. For a repeat (`duplicate`) that is where the first one went."""

    first_offset: Offset
    last_offset: Offset
    append_time_ms: int  # -1 unless the topic wants our time
    log_start_offset: Offset
    size: int
    count: int  # type: ignore[assignment]  # Kafka's word for it
    duplicate: bool
    rolled: bool  # a segment was closed: worth a flush soon


class Read(NamedTuple):
    """What can be sent from an offset on, and where that lies; `slice` is None for nothing."""

    slice: FileSlice | None
    offset: Offset
    segment_base: Offset
    position: int
