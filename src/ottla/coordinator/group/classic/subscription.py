"""What a consumer's metadata says it subscribes to.

Pure. The broker passes this metadata from members to their leader unread; it only looks at the
topics, to know which committed offsets are still in use.
"""

from __future__ import annotations

from typing import Final

from ottla.coordinator.record_fields import Reader

CONSUMER: Final = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of one member's subscription; None when it cannot be read."""
    try:
        reader = Reader(metadata)
        return frozenset(reader.text() for _ in range(reader.array()))
    except ValueError:
        return None
