"""A program of its own: a pipeline whose driver dies between two writes of a batch.

    python killed_writes.py FILE [WRITE BATCH]

Runs the file once, with what is there. `WRITE` is `files` or `table`: when that write of `BATCH`
would begin, everything of this program is killed with SIGKILL: the driver, its JVM, every Python
worker. What the batch's earlier writes have committed stays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ottla.spark import pipelines
from ottla.spark.pipelines.sinks import shared_reads
from tests.spark.killed_query import die


def fatal(write: Callable[..., Any], batch: int) -> Callable[..., Any]:
    """`write`, whose last argument is the number of the batch; deadly for one of them."""

    def watched(*given: Any) -> Any:
        if given[-1] == batch:
            die()
        return write(*given)

    return watched


def main(path: str, write: str = "", batch: str = "0") -> None:
    made: Any = shared_reads
    if write == "files":
        made._add_files = fatal(shared_reads._add_files, int(batch))
    elif write == "table":
        real = made.lake_writer
        made.lake_writer = lambda *given: fatal(real(*given), int(batch))
    pipelines.run(path, once=True, master="local[2]")


if __name__ == "__main__":
    main(*sys.argv[1:])
