"""What a broker has that was started without settings, where a test's broker has something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULT_SETTINGS: Final[Mapping[str, str]] = {
    "flush.before.ack": "auto",
    "group.initial.rebalance.delay.ms": "3000",
    "log.retention.ms": str(7 * 24 * 3_600_000),
}
