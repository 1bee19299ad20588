"""Making the format known to a session, and noticing workers that would not find it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import ottla.spark
from ottla.model.errors import UserError
from ottla.spark.source import OttlaDataSource


class Session:
    """As much of a Spark session as registering needs."""

    def __init__(self, python: str | None) -> None:
        self.settings: dict[str, str] = {}
        self.sources: list[type] = []
        if python is not None:
            self._sc = type("Context", (), {"pythonExec": python})()

    @property
    def conf(self) -> Any:
        return type("Conf", (), {"set": staticmethod(self.settings.__setitem__)})

    @property
    def dataSource(self) -> Any:
        return type("Sources", (), {"register": staticmethod(self.sources.append)})


@pytest.mark.parametrize("python", [sys.executable, None])
def test_the_format_is_registered_and_filters_are_pushed_down_on_request(
    python: str | None,
) -> None:
    session = Session(python)
    ottla.spark.register(cast("SparkSession", session))
    assert session.sources == [OttlaDataSource]
    assert session.settings == {}
    ottla.spark.register(cast("SparkSession", session), push_filters=True)
    assert session.settings == {"spark.sql.python.filterPushdown.enabled": "true"}


@pytest.mark.parametrize("python", ["false", "no-such-python"])
def test_workers_that_would_not_find_us_are_told_of_with_what_to_do(python: str) -> None:
    session = Session(python)
    with pytest.raises(UserError, match=f"PYSPARK_PYTHON to {sys.executable}"):
        ottla.spark.register(cast("SparkSession", session))
    assert session.sources == []


def test_the_package_costs_nothing_until_it_is_used() -> None:
    program = "import sys, ottla.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_ending_an_abandoned_query_needs_neither_spark_nor_arrow() -> None:
    program = (
        "import sys, ottla.spark.abandoned_transactions; "
        "sys.exit(any(each in sys.modules for each in ('pyspark', 'pyarrow', 'numba')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
