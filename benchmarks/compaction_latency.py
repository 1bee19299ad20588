"""Promise: a log that is being compacted does not hold up a produce to another.

A compacted topic is filled with the same few keys over and over; then the cleaner has hundreds of
megabytes to go through, and meanwhile small requests to another topic are timed.

    python -m benchmarks.compaction_latency
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks.contenders import KAFKA_SETTINGS, OTTLA_SETTINGS, Contender
from tools import nodes

RECORDS: Final = 600_000
KEYS: Final = 10_000
VALUE: Final = bytes(500)
DIRTY: Final = "compacted-later"
_WAIT_S: Final = 120.0
_EAGER: Final = {"log.cleaner.backoff.ms": "100"}
# The cleaner may take every closed segment at once, when it is let loose.
_COMPACTED: Final = {
    "segment.bytes": str(16 << 20),
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": str(3_600_000),
}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as name:
        with nodes.ottla(Path(name) / "ottla", {**OTTLA_SETTINGS, **_EAGER}) as node:
            _report("ottla", *_measure(Contender("ottla", node, {})))
        with nodes.kafka(Path(name) / "kafka", {**KAFKA_SETTINGS, **_EAGER}) as node:
            _report("kafka", *_measure(Contender("kafka", node, {})))
    return 0


def _measure(contender: Contender) -> tuple[dict[str, float], dict[str, float], float]:
    """Percentiles when all is quiet, percentiles during compaction, and MB it threw away."""
    admin = AdminClient({"bootstrap.servers": contender.bootstrap, "log_level": 0})
    _done(admin.create_topics([NewTopic(DIRTY, 1, 1, config=_COMPACTED)]))
    _fill(contender.bootstrap)
    with contender.topic(1) as topic:
        load = {"topic": topic, "size": 100, "acks": 1}
        contender.drive("raw", do="one at a time", seconds=2, **load)  # warm
        quiet = contender.drive("raw", do="one at a time", seconds=4, **load)
        before = _size_mb(contender)
        loose = threading.Thread(target=_let_loose, args=(admin,))
        loose.start()
        busy = contender.drive("raw", do="one at a time", seconds=8, **load)
        loose.join()
    return quiet, busy, before - _size_mb(contender)


def _fill(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(DIRTY, VALUE, key=b"%d" % (number % KEYS))
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(_WAIT_S) == 0


def _let_loose(admin: AdminClient) -> None:
    """Nothing was old enough to compact; now everything is."""
    entry = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, DIRTY, incremental_configs=[entry])
    _done(admin.incremental_alter_configs([resource]))


def _size_mb(contender: Contender) -> float:
    folder = contender.node.data_dir / f"{DIRTY}-0"
    return sum(file.stat().st_size for file in folder.glob("*.log")) / 1e6


def _report(kind: str, quiet: dict[str, float], busy: dict[str, float], freed_mb: float) -> None:
    for name in ("p50 ms", "p99 ms", "p99.9 ms"):
        print(f"{kind}: {name} quiet {quiet[name]:.3f}, while compacting {busy[name]:.3f}")
    print(f"{kind}: compaction freed {freed_mb:.0f} MB meanwhile")


def _done(futures: Any) -> None:
    for future in futures.values():
        future.result(_WAIT_S)


if __name__ == "__main__":
    sys.exit(main())
