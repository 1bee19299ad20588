"""Spark's own connector by mechanisms: it reads and writes, and is refused as by Apache Kafka.

The cells and what Kafka answers are those of `tests/interop/security`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.interop.security import spark_connector
from tests.interop.security.cells import DONE, LOGIN, SPARK, Cell, Outcome, cells, recorded
from tests.interop.security.site import Site, secure_site
from tests.kdc import need_gssapi

pytestmark = [pytest.mark.spec("SEC-01", "SEC-05"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=["ottla", pytest.param("kafka", marks=pytest.mark.slow)])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    need_gssapi()
    folder = tmp_path_factory.mktemp(f"secure-{request.param}")
    with secure_site(folder, request.param) as site:
        yield site


@pytest.fixture(scope="module")
def done(site: Site, spark: SparkSession) -> dict[Cell, Outcome]:
    return spark_connector.run(spark, site, map(site.job, cells(SPARK)))


@pytest.mark.parametrize("cell", cells(SPARK), ids=str)
def test_sparks_connector_gets_what_it_gets_from_kafka(
    done: dict[Cell, Outcome], cell: Cell
) -> None:
    assert done[cell] == recorded()[cell]
    assert (done[cell] == DONE) == (cell.fault == LOGIN)
