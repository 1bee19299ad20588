"""A broker of its own for each job, so that topics have the names that templates give them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.testing import Broker
from tests.spark.pipelines.jobs import Stage


@pytest.fixture
def stage(spark: SparkSession, tmp_path: Path) -> Iterator[Stage]:
    with Broker() as broker:
        yield Stage(spark, broker.bootstrap_servers, tmp_path)
