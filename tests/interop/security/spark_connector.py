"""The cells of Spark's own Kafka connector. It joins no group: it reads what it may, partition by
partition, so that the missing rule is that of the topic."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from tests.interop.security.cells import Access, Cell, Job, Outcome
from tests.interop.security.site import Site, java_options, properties, token_file
from tools import kafka_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE: Final = 3
HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_EXCEPTION: Final = re.compile(r"org\.apache\.kafka\.common\.errors\.(\w+Exception)")


def run(spark: SparkSession, site: Site, jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]  # there is one: it runs
    for option in java_options(site.folder, site.realm):
        system.setProperty(*option.removeprefix("-D").split("=", 1))

    def outcome(job: Job) -> Outcome:
        return Outcome(_attempt(lambda: produce(spark, job)), _attempt(lambda: consume(spark, job)))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        listed = list(jobs)
        return dict(zip((job.cell for job in listed), pool.map(outcome, listed), strict=True))


def run_alone(site: Site, jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    """With a Spark of its own."""
    from pyspark.sql import SparkSession

    from tests.spark.quick_jvm import QUICK_SPARK

    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = sorted(kafka_cache.jars("spark-connector").glob("*.jar"))
    builder = SparkSession.builder.master("local[2]").config(map={**QUICK_SPARK})
    spark = builder.config("spark.jars", ",".join(map(str, jars))).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        return run(spark, site, jobs)
    finally:
        spark.stop()


def options(access: Access) -> dict[str, str]:
    texts = {"bootstrap.servers": access.bootstrap, **properties(access)}
    if access.bearer is not None:
        texts |= {
            "sasl.login.callback.handler.class": HANDLER,
            "sasl.oauthbearer.token.endpoint.url": token_file(access.bearer),
        }
    return {f"kafka.{name}": text for name, text in texts.items()}


def produce(spark: SparkSession, job: Job) -> None:
    rows = spark.range(1).selectExpr(f"'{job.value}' value")
    rows.write.format("kafka").options(**options(job.access)).option("topic", job.topic).save()


def consume(spark: SparkSession, job: Job) -> None:
    reader = spark.read.format("kafka").options(**options(job.access))
    reader = reader.option("subscribe", job.topic).option("kafka.group.id", job.group)
    rows = reader.option("fetchOffset.numRetries", "1").load()
    assert rows.where(f"cast(value as string) = '{job.value}'").count() >= 1, "no such record"


def _attempt(part: Callable[[], None]) -> str:
    try:
        part()
    except Exception as error:
        return _name(error)
    return "ok"


def _name(error: Exception) -> str:
    """Kafka's exception, wherever Spark shows it."""
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    texts = [str(error)]
    while origin is not None:
        texts.append(str(origin.toString()))
        origin = origin.getCause()
    found = _EXCEPTION.search("\n".join(texts))
    return found[1] if found else f"{type(error).__name__}: {texts[-1][:300]}"
