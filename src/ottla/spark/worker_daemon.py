"""Spark's Python processes: the one that workers are forked from, and what each of them keeps.

    spark.python.daemon.module=ottla.spark.worker_daemon

Spark's own daemon is almost empty, and each worker imports for itself: a second of CPU time for
pyspark, pyarrow, the kernels and us, in every worker. A fork of this one has it all, and shares the
memory.

Owns: what is imported before the first fork, that collections leave alone what was imported, and
the form of our log lines. Never: does a worker's work, nor depends on what it could not import;
imports almost nothing itself, as the process that only tells a schema needs no client.

Spark's daemon imports late because threads do not survive a fork. What is imported here starts two:
jemalloc's of pyarrow and, unless OMP_NUM_THREADS is 1 as Spark sets it, OpenBLAS's; both libraries
start theirs again in the child. Hot: benchmarks/pipeline_start.py.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from contextlib import redirect_stdout
from importlib import import_module
from typing import Final

log = logging.getLogger(__name__)

MODULES: Final = (
    "pyspark.worker",
    "pyarrow.compute",
    "ottla.spark.source",
    "ottla.spark.stream_reader",
    "ottla.spark.batch_reader",
    "ottla.spark.span_fetcher",
    "ottla.spark.sink_steps",
    "ottla.security.sasl.login_requests",
)

WORKER: Final = "pyspark.daemon"
"""Imported in every Python process that Spark starts on its own."""
_seen = 0


def preload() -> None:
    """Import what workers use; whatever fails here fails, or not, in the worker that needs it."""
    for name in MODULES:
        try:
            import_module(name)
        except ImportError as missing:
            log.debug("not preloaded: %s", missing)
    try:
        from ottla.protocol.records.columns.warm import warm_up_all

        warm_up_all()
    except Exception as failure:
        log.debug("kernels not loaded: %s", failure)
    os.register_at_fork(after_in_child=_seed_numpy)
    gc.collect()
    gc.freeze()  # collections in workers leave the shared memory untouched


def _seed_numpy() -> None:
    """Each worker draws numbers of its own, as if it had imported numpy itself."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def keep() -> None:
    """Leave what is there to itself, if anything was imported since the last time.

    Spark collects garbage after every task: what is imported stays, and need not be looked at.
    """
    global _seen  # of the process, as what it counts is
    if not _seen and WORKER in sys.modules:
        _mark_warnings()
    if len(sys.modules) != _seen:
        _seen = len(sys.modules)
        gc.freeze()


def _mark_warnings() -> None:
    """What we say in a worker of Spark begins with our name: the rest of its output is Spark's."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("ottla: %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger("ottla").addHandler(handler)


def main() -> None:
    from pyspark.daemon import manager

    with redirect_stdout(sys.stderr):  # Spark reads the daemon's port from standard output
        preload()
    manager()


if __name__ == "__main__":
    main()
