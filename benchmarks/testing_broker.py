"""Promise: a broker inside a test process is ready in under 100 ms after the import.

python -m benchmarks.testing_broker
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from typing import Final

READY_MS: Final = 100.0
TURNS: Final = 9
# Each turn is a process of its own: a second broker in one process has everything loaded.
_PROGRAM: Final = """
import time
began = time.perf_counter()
from ottla.testing import Broker
imported = time.perf_counter()
with Broker() as broker:
    ready = time.perf_counter()
print(1000 * (imported - began), 1000 * (ready - imported))
"""


def main() -> int:
    turns = [_turn() for _ in range(TURNS)]
    imported_ms, ready_ms = (median(column) for column in zip(*turns, strict=True))
    slowest_ms = max(ready for _, ready in turns)
    print(
        f"import {imported_ms:.0f} ms; then ready in {ready_ms:.0f} ms, at worst {slowest_ms:.0f}"
    )
    return 0 if ready_ms < READY_MS else 1


def _turn() -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    imported, ready = map(float, done.stdout.split())
    return imported, ready


if __name__ == "__main__":
    sys.exit(main())
