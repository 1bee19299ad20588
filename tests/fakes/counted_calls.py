"""How often each function in C is called on this thread, and how many calls of Python there are.

Two pieces of work with equal counts do the same; their times would differ with the machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Counts while the block lasts; calls of Python are counted as "Python"."""
    calls: Counter[str] = Counter()

    def count(frame: object, event: str, argument: object) -> None:
        if event == "c_call":
            calls[getattr(argument, "__qualname__", str(argument))] += 1
        elif event == "call":
            calls["Python"] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
