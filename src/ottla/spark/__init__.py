"""Spark reads and writes topics: `format("ottla")`, batch and streaming, Arrow both ways, no jar.

    import ottla.spark
    ottla.spark.register(spark)
    spark.readStream.format("ottla").option("kafka.bootstrap.servers", "localhost:9092") …

- `source`         the data source Spark is given; Spark finds it by itself, too (`pyspark_ottla`)
- `options`, `parsed_options`  every option, its default, its errors; pure
- `offsets`        offsets as JSON, points to begin and end at, lost records; pure
- `plan`           how much a batch reads and how it is cut into tasks; pure
- `delays`         how old a record must be before it is read; pure
- `rows`           the columns that are read and written
- `filters`        conditions that Spark pushes down, as bounds on what is read
- `batch_reader`, `stream_reader`, `stream_offsets`  planning, as Spark calls it
- `partition_offsets` what the driver asks: partitions, offsets
- `reader`, `span_fetcher`  what a task does: fetches ahead, decodes into Arrow
- `writer`, `sink_steps`, `row_sender`  what a task does to write, and the driver to commit
- `commit_decisions`, `exactly_once`  who may commit a batch, and the steps of it; pure
- `commit_log`, `prepared_commit`  where decisions are kept; committing what others have prepared
- `abandoned_transactions` ends what a query left behind, for a command
- `connection`     a client on a thread, kept by each worker process
- `worker_daemon`  the process that Spark forks workers from, with their imports in it, and what
  each of them keeps
- `user_errors`    a user's mistake as one line

May import the client. Never the broker. Importing this package imports no pyspark.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.model.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]

PUSH_FILTERS: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession, *, push_filters: bool = False) -> None:
    """Make `format("ottla")` known to a session.

    `push_filters` lets Spark push filters down to Python sources, for all of the session. Spark 4.3
    keeps the filters of one query in the frame that was loaded: another use of the same frame, in
    the same query or a later one, silently gets the filtered rows. Load a frame for each use then.
    """
    from ottla.spark.source import OttlaDataSource

    _check_python(spark)
    if push_filters:
        spark.conf.set(PUSH_FILTERS, "true")
    spark.dataSource.register(OttlaDataSource)


def _check_python(spark: SparkSession) -> None:
    """Spark runs us in processes of its own: they must find us too."""
    context = getattr(spark, "_sc", None)  # a session of Spark Connect has none
    if context is None:
        return
    chosen = context.pythonExec
    program = shutil.which(chosen)
    if program is not None and Path(program) == Path(sys.executable):
        return
    command = [chosen, "-c", "import pyarrow, ottla.spark"]
    try:
        failed = subprocess.run(command, capture_output=True, check=False).returncode
    except OSError:
        failed = True
    if failed:
        raise UserError(
            f"Spark starts its workers with {chosen} ({program or 'not found'}), which does not "
            "have ottla[spark]. Set the environment variable PYSPARK_PYTHON to "
            f"{sys.executable} before the session is made, or install ottla[spark] there."
        )
