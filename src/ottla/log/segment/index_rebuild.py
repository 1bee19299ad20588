"""Rebuilding a segment's indexes from its batches.

Owns the scan that adds the batches of a `.log` file again, as appending them did. Never checks a
batch beyond its header: `recovery` does, where a segment may have a torn end.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.log.stored_batch import StoredBatch, walk_headers

if TYPE_CHECKING:
    from ottla.log.segment.segment import Segment

logger = logging.getLogger(__name__)

INTERVAL_BYTES: Final = 4_096  # between index entries, where the topic's setting is not at hand


def rebuild_indexes(segment: Segment, reason: str, interval_bytes: int = INTERVAL_BYTES) -> None:
    """Derive both indexes again from the batches, as appending them did."""
    logger.warning("%s: rebuilding offset and time index: %s", segment.files.path(), reason)
    size = segment.size
    segment.reset_indexes()
    try:
        for batch in walk_headers(segment.file(), 0, size):
            record_stored_batch(segment, batch, interval_bytes)
    finally:
        segment.size = size  # all of it is still there, good or bad
    segment.finish()


def record_stored_batch(segment: Segment, batch: StoredBatch, interval_bytes: int) -> None:
    """Add a batch that is in the file already, the next one after the last."""
    segment.record_batch(
        batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size, interval_bytes
    )
