"""Promise: ten thousand partitions open in under 20 s, with under 20 KB of memory each.

python -m benchmarks.partitions_10k
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks.contenders import rss_mb
from tools import nodes

TOPICS: Final = 100
PARTITIONS: Final = 100  # of each topic
OPEN_S: Final = 20.0
KB_EACH: Final = 20.0
_WAIT_S: Final = 300.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as name:
        folder = Path(name)
        with nodes.ottla(folder) as empty:
            empty_mb = rss_mb(empty.pid)
            began = time.perf_counter()
            _create(empty.bootstrap)
            created_s = time.perf_counter() - began
        began = time.perf_counter()
        with nodes.ottla(folder) as full:
            opened_s = time.perf_counter() - began
            kb_each = (rss_mb(full.pid) - empty_mb) * 1000 / (TOPICS * PARTITIONS)
    print(f"{TOPICS * PARTITIONS} partitions created in {created_s:.1f} s")
    print(f"opened in {opened_s:.1f} s (promised {OPEN_S:g}), {kb_each:.1f} KB each ({KB_EACH:g})")
    return 0 if opened_s < OPEN_S and kb_each < KB_EACH else 1


def _create(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(TOPICS):
        new = [NewTopic(f"many-{number}", PARTITIONS, 1)]
        for future in admin.create_topics(new, operation_timeout=_WAIT_S).values():
            future.result(_WAIT_S)


if __name__ == "__main__":
    sys.exit(main())
