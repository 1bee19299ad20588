"""The Spark session a pipeline runs in.

Owns: what such a session is set to where a file says nothing. Never: assumes that tasks run on
this machine.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlparse

import ottla.spark
from ottla.spark.pipelines.java import OF_PANDAS, launch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # Spark's own default is retired
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "20",  # we look twice a second
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
ON_ONE_MACHINE: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
LOCAL_CHECKPOINTS: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
}
"""For checkpoints on a disk of this machine. Spark's default asks Hadoop's FileContext to rename,
which on such a disk runs `readlink` or `chmod` twenty times a batch, a tenth of a second in all, to
look whether the file is there before it renames, as this one does. Elsewhere it stays: on HDFS a
rename by FileContext is one step, and another writer is found out by it."""


def session(
    name: str, master: str | None, settings: Mapping[str, str], checkpoint: str | None = None
) -> SparkSession:
    """A session with `format("ottla")`, its workers on this interpreter unless told otherwise.

    UserError where there is no Java.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master or settings.get("spark.master") or LOCAL
    builder = SparkSession.builder.appName(name).master(master)
    local = ON_ONE_MACHINE if master.startswith("local") else {}
    told = {**SETTINGS, **local, **settings}
    launch({**told, "spark.master": master, "spark.app.name": name})
    for key, value in told.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", OF_PANDAS, FutureWarning)
        spark = builder.getOrCreate()
    if checkpoint is not None and _is_on_a_disk(spark, checkpoint):
        for key, value in LOCAL_CHECKPOINTS.items():
            spark.conf.set(key, settings.get(key, value))
    ottla.spark.register(spark)
    return spark


def _is_on_a_disk(spark: SparkSession, path: str) -> bool:
    """Whether a path is one of files, and not of a store that Hadoop is set to."""
    where = urlparse(path).scheme or urlparse(_default_store(spark)).scheme
    return where == "file"


def _default_store(spark: SparkSession) -> str:
    found: str = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")
    return found
