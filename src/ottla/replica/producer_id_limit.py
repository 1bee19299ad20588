"""How many producer ids the partitions of this broker may remember.

Owns the limit, and the count: what the last recount found, and the ids accepted since. Never says
when to recount; `replica/maintenance_loop.py` does. Every client can have any number of new ids,
and a partition remembers each for `producer.id.expiration.ms`, a day by default.

From three quarters of the limit on, ids are forgotten sooner: `SHORT_KEEP_MS` after their last
batch, by which time every client has given up its retries. At the limit, batches of further ids are
refused with POLICY_VIOLATION, which clients report and do not retry; known producers go on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ottla.delay.slices import in_slices
from ottla.log.log import Log
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

PRODUCER_BYTES: Final = 1_000
"""Memory counted for one producer id in one partition: its entry and its last batches."""
SHORT_KEEP_MS: Final = 600_000
LOG_INTERVAL_MS: Final = 10_000
COUNTED_AT_ONCE: Final = 1_000
"""Partitions counted between two turns of the loop."""


class ProducerIdLimit:
    def __init__(self, most: int = -1) -> None:
        self.most = most
        """Below 0: no limit."""
        self.count = 0
        self._logged_ms: WallMs | None = None

    async def recount(self, logs: Iterable[Log]) -> None:
        self.count = sum([len(log.producers) async for log in in_slices(logs, COUNTED_AT_ONCE)])

    def keep_ms(self, configured_ms: int) -> int:
        """How long an idle producer id is remembered."""
        is_pressed = 0 <= self.most * 3 // 4 <= self.count
        return min(configured_ms, SHORT_KEEP_MS) if is_pressed else configured_ms

    def admit(self, key: TopicPartition, producer_id: int, now_ms: WallMs) -> None:
        """Count an id that the partition does not know; KafkaError if there are too many."""
        if 0 <= self.most <= self.count:
            why = (
                f"producer {producer_id} is new to {key}, and the partitions of this broker "
                f"remember {self.count} producer ids, at most {self.most} (derived from "
                f"memory.limit.bytes)"
            )
            if self._logged_ms is None or now_ms - self._logged_ms >= LOG_INTERVAL_MS:
                self._logged_ms = now_ms
                log.warning("refused a batch: %s", why)
            raise KafkaError(ErrorCode.policy_violation, why)
        self.count += 1
