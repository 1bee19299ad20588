"""How far batches are compressed, so that they can be filled by the size they will have.

Owns: an estimate for each topic, learned from the batches before. Never compresses.

Follows bad news at once and good news slowly: a batch that turns out larger than it may be has to
be split and sent anew, one that turns out smaller costs little.
"""

from __future__ import annotations

from typing import Final

IMPROVEMENT: Final = 0.05
SAFETY: Final = 1.05
BEST: Final = 0.1


class CompressionRatios:
    """Compressed by uncompressed bytes, by topic."""

    def __init__(self, codec: str) -> None:
        self._compresses = codec != "none"
        self._ratios: dict[str, float] = {}

    def room(self, topic: str, batch_bytes: int) -> int:
        """Bytes of records that fill a batch of this size."""
        if not self._compresses:
            return batch_bytes
        return int(batch_bytes / min(1.0, self._ratios.get(topic, 1.0) * SAFETY))

    def learn(self, topic: str, plain_bytes: int, compressed_bytes: int) -> None:
        if not self._compresses or plain_bytes <= 0:
            return
        seen = max(BEST, compressed_bytes / plain_bytes)
        before = self._ratios.get(topic, 1.0)
        self._ratios[topic] = seen if seen > before else max(before - IMPROVEMENT, seen)
