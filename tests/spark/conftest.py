"""One broker and one local Spark for every test that needs them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

import ottla.spark
from ottla.spark.pipelines.java import compiled_workers
from ottla.spark.pipelines.session import LOCAL_CHECKPOINTS
from ottla.testing import Broker
from tests.spark.quick_jvm import QUICK_JAVA, QUICK_SPARK
from tests.spark.spark_cluster import Cluster

MASTER: Final = "local[2]"
INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Plans for a few rows are not compiled, nor made again. Spark as it comes is run by the tests
that start it in a process of its own."""


def pytest_configure(config: pytest.Config) -> None:
    for ignored in (
        "ignore:PySpark does not yet fully support pandas:FutureWarning",
        "ignore:.*unclosed.*socket:ResourceWarning",  # of py4j, at the end
    ):
        config.addinivalue_line("filterwarnings", ignored)
    os.environ.update(QUICK_JAVA)  # for pipelines, clusters and servers that tests start


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = connector_jars()
    builder = (
        SparkSession.builder.master(MASTER)
        .appName("ottla tests")
        .config(map={**QUICK_SPARK, **INTERPRETED, **LOCAL_CHECKPOINTS})
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.pollingDelay", "20ms")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        .config("spark.jars", ",".join(jars))
    )
    # As a pipeline has it: else each of thousands of Python processes compiles pyspark again.
    with compiled_workers({"spark.master": MASTER}, os.environ):
        made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    ottla.spark.register(made)
    yield made
    made.stop()


def connector_jars() -> list[str]:
    """Spark's own Kafka connector, and what it needs."""
    from tools.kafka_cache import jars

    return [str(path) for path in sorted(jars("spark-connector").glob("*.jar"))]


@pytest.fixture
def cluster(broker: Broker, spark: SparkSession, tmp_path: Path) -> Cluster:
    return Cluster(broker.bootstrap_servers, spark, tmp_path)
