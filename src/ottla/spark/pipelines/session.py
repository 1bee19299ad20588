"""The Spark session a pipeline runs in.

Owns: the default settings of such a session, its start and its stop.
Never: assumes that tasks run on this machine.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final
from urllib.parse import urlparse

import ottla.spark
from ottla.spark.pipelines.checkpoint_owner import local_folder
from ottla.spark.pipelines.java import LOG, hush_pandas, launch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
STOP_S: Final = 3.0
"""How long stopping Spark may take."""
SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # Spark's own default is retired
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "20",  # we look twice a second
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.daemon.module": "ottla.spark.worker_daemon",  # workers begin with their imports
    "spark.python.unix.domain.socket.enabled": "true",  # a TCP connection waits 35 ms in each task
}
ON_ONE_MACHINE: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
TABLES: Final = "spark.sql.warehouse.dir"
OWN_TABLES: Final = "spark.warehouse"
"""No query has a name with a dot, and so no folder beside this one."""
CONTEXT_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
LOCAL_CHECKPOINTS: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
}
"""For checkpoints on a disk of this machine. Spark's default renames with Hadoop's FileContext,
which on such a disk runs `readlink` or `chmod` twenty times a batch, a tenth of a second in all,
to check whether the file exists before the rename, as this one does. Elsewhere the default stays:
on HDFS a rename by FileContext is atomic and detects another writer."""


def session(
    name: str,
    master: str | None,
    settings: Mapping[str, str],
    checkpoint: str | None = None,
    *,
    secrets: Sequence[str] = (),
) -> SparkSession:
    """A session with `format("ottla")`, its workers on this interpreter by default; on the
    `python3` of each machine where executors get an archive.

    UserError where there is no Java. `secrets` are masked in its log.
    """
    from pyspark.sql import SparkSession

    has_archive = "spark.archives" in settings
    os.environ.setdefault("PYSPARK_PYTHON", "python3" if has_archive else sys.executable)
    master = master or settings.get("spark.master") or LOCAL
    builder = SparkSession.builder.appName(name).master(master)
    local = ON_ONE_MACHINE if master.startswith("local") else {}
    merged = {**SETTINGS, **local, **own_tables(checkpoint), **settings}
    launch(
        {**merged, "spark.master": master, "spark.app.name": name},
        partial(log_path, checkpoint),
        secrets,
    )
    for key, value in merged.items():
        builder = builder.config(key, value)
    hush_pandas()
    spark = builder.getOrCreate()
    _silence(spark)
    if checkpoint is not None and _is_on_a_disk(spark, checkpoint):
        for key, value in LOCAL_CHECKPOINTS.items():
            spark.conf.set(key, settings.get(key, value))
    ottla.spark.register(spark)
    return spark


def log_path(checkpoint: str | None) -> Path:
    """Where Spark's own output goes: beside the checkpoints, or in the folder for temporary files
    where there are none on a local disk."""
    folder = None if checkpoint is None else local_folder(checkpoint)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return folder / LOG
        except OSError:
            pass  # the start of the queries says what is wrong with it
    return Path(tempfile.gettempdir()) / f"ottla-{os.getpid()}-{LOG}"


def own_tables(checkpoint: str | None) -> Mapping[str, str]:
    """Where Spark has its own tables. It makes that folder whether there are any or not, and by
    default in the current one: here beside the checkpoints, or for as long as this process lives
    where there are none."""
    if checkpoint is None:
        folder = Path(tempfile.mkdtemp(prefix="ottla-spark-tables-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return {TABLES: f"file:{folder}"}
    beside = local_folder(checkpoint)
    return {} if beside is None else {TABLES: f"file:{beside.absolute() / OWN_TABLES}"}


def _silence(spark: SparkSession) -> None:
    """Keep tracebacks of connections that end with Java, and of errors, off standard error.

    Spark's server for accumulators and py4j, in this process, print one for each when a worker or
    Java ends before them. A failure of a query is reported by the query, and one of its SQL, which
    PySpark prints with Java's trace and the text of the SQL, by whom it is raised to.
    """
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for name in CONTEXT_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, address: None


def activate(spark: SparkSession) -> None:
    """Make it the active session of the calling thread.

    Spark looks data sources of Python up in the active session, which is one per thread; a query
    started on a thread that has none fails with DATA_SOURCE_NOT_FOUND.
    """
    from pyspark.sql import SparkSession

    jvm = getattr(spark, "_jvm", None)  # a session of Spark Connect has none
    if jvm is not None:
        SparkSession._get_j_spark_session_class(jvm).setActiveSession(spark._jsparkSession)


def stop_session(spark: SparkSession) -> None:
    """Stop Spark, waiting no longer than `STOP_S`: the rest ends with this process."""
    thread = Thread(target=spark.stop, daemon=True)
    thread.start()
    thread.join(STOP_S)


def _is_on_a_disk(spark: SparkSession, path: str) -> bool:
    """Whether a path is on a file system, and not in a store that Hadoop is configured for."""
    scheme = urlparse(path).scheme or urlparse(_default_store(spark)).scheme
    return scheme == "file"


def _default_store(spark: SparkSession) -> str:
    uri: str = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")
    return uri
