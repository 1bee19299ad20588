"""The Spark session a pipeline runs in.

Owns: what such a session is set to where a file says nothing. Never: assumes that tasks run on
this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import ottla.spark

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


def session(name: str, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    """A session with `format("ottla")`, its workers on this interpreter unless told otherwise."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master or settings.get("spark.master") or LOCAL
    builder = SparkSession.builder.appName(name).master(master)
    local = ON_ONE_MACHINE if master.startswith("local") else {}
    for key, value in {**SETTINGS, **local, **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    ottla.spark.register(spark)
    return spark
