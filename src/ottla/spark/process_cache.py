"""What one of Spark's Python processes holds for good, out of the collector's sight.

Owns: one call, made when Spark calls us. Never: decides what is kept; all that is there then is.

Spark's daemon collects garbage after everything it has had one of its processes do, and whoever is
next waits for it. Modules and compiled kernels are a good hundred thousand objects that are never
garbage: looking through them takes 50 to 100 ms, which is longer than the records of a small batch
take. Nothing else is there yet when a call begins: what the one before left has been collected.
"""

from __future__ import annotations

import gc
import sys

_seen = 0


def keep() -> None:
    """Leave what is there to itself, if anything was imported since the last time."""
    global _seen  # of the process, as what it counts is
    if len(sys.modules) != _seen:
        _seen = len(sys.modules)
        gc.freeze()
