"""Spark's own connector and ours by mechanisms: they read and write, and are refused.

The cells and what Kafka answers are those of `tests/interop/security`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ottla
from ottla.cli.main import run as run_command
from ottla.spark.pipelines.yaml_file import open_pipeline
from tests.interop.security import spark_connector
from tests.interop.security.cells import (
    DONE,
    FAULTS,
    KERBEROS,
    LOGIN,
    NO_RULE,
    PLAIN,
    SCRAM_512,
    SPARK,
    TLS,
    UNKNOWN_USER,
    UNTRUSTED,
    WRONG_PASSWORD,
    Access,
    Cell,
    Outcome,
    cells,
    recorded,
)
from tests.interop.security.site import OPEN, Site, our_config, secure_site
from tests.kdc import need_gssapi
from tests.spark.pipelines.jobs import Stage

pytestmark = [pytest.mark.spec("SEC-01", "SEC-05"), pytest.mark.timeout(300)]
WAIT_S = 30.0


@pytest.fixture(scope="module", params=["ottla", pytest.param("kafka", marks=pytest.mark.slow)])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    need_gssapi()
    folder = tmp_path_factory.mktemp(f"secure-{request.param}")
    with secure_site(folder, request.param) as site:
        yield site


@pytest.fixture
def guarantee(request: pytest.FixtureRequest) -> dict[str, str]:
    """Of our sink: Apache Kafka has no two-phase commit, which exactly once needs."""
    return {"ottla.exactly.once": str(request.node.callspec.params["site"] == "ottla").lower()}


@pytest.fixture(scope="module")
def done(site: Site, spark: SparkSession) -> dict[Cell, Outcome]:
    return spark_connector.run(spark, site, map(site.job, cells(SPARK)))


@pytest.mark.parametrize("cell", cells(SPARK), ids=str)
def test_sparks_connector_gets_what_it_gets_from_kafka(
    done: dict[Cell, Outcome], cell: Cell
) -> None:
    assert done[cell] == recorded()[cell]
    assert (done[cell] == DONE) == (cell.fault == LOGIN)


def ours(access: Access) -> dict[str, str]:
    return {f"kafka.{name}": text for name, text in our_config(access).items()}


def send(access: Access) -> None:
    with ottla.Producer(config=our_config(access)) as producer:
        producer.send(OPEN, b"a value").result(WAIT_S)


# Not GSSAPI: Spark's Python workers have the KRB5_CONFIG that Spark was started with.
@pytest.mark.parametrize("mechanism", [name for name in FAULTS if name != KERBEROS])
def test_our_source_and_sink_log_in_and_show_no_secret(
    site: Site, spark: SparkSession, mechanism: str, guarantee: dict[str, str]
) -> None:
    access = site.access(mechanism)
    value = f"ours-{mechanism}".replace(" ", "-")
    rows = spark.range(3).selectExpr(f"concat('{value}-', id) value")
    sink = rows.write.format("ottla").mode("append").options(**ours(access), **guarantee)
    sink.option("topic", OPEN).save()
    reader = spark.read.format("ottla").options(**ours(access)).option("subscribe", OPEN)
    found = reader.load().where(f"cast(value as string) like '{value}-%'")
    assert found.count() == 3
    plan = found._jdf.queryExecution().toString()
    bearer = access.bearer.read_text() if access.bearer else ""
    for secret in filter(None, (access.password, bearer)):
        assert secret not in plan


def test_our_source_and_sink_stream_with_a_login(
    site: Site, spark: SparkSession, tmp_path: Path, guarantee: dict[str, str]
) -> None:
    send(site.access(SCRAM_512))
    options = ours(site.access(SCRAM_512))
    stream = spark.readStream.format("ottla").options(**options).option("subscribe", OPEN)
    rows = stream.option("startingOffsets", "earliest").load().where("value is not null")
    with ottla.Admin(config=our_config(site.access(SCRAM_512))) as admin:
        admin.create_topic("streamed")
    writer = rows.select("value").writeStream.format("ottla").options(**options)
    query = (
        writer.options(**guarantee)
        .option("topic", "streamed")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert query.exception() is None
    assert site.access(SCRAM_512).password not in str(query.lastProgress)
    reader = spark.read.format("ottla").options(**options)
    assert reader.option("subscribe", "streamed").load().count() > 0


@pytest.mark.parametrize(
    ("mechanism", "fault", "text"),
    [
        (PLAIN, WRONG_PASSWORD, "login by PLAIN failed"),
        (SCRAM_512, UNKNOWN_USER, "login by SCRAM-SHA-512 failed"),
        (TLS, UNTRUSTED, "unknown authority"),
        (TLS, NO_RULE, "not authorized to access topic theirs"),
    ],
)
def test_our_source_says_why_it_is_refused(
    site: Site, spark: SparkSession, mechanism: str, fault: str, text: str
) -> None:
    job = site.job(Cell("ours", mechanism, fault))
    reader = spark.read.format("ottla").options(**ours(job.access)).option("subscribe", job.topic)
    with pytest.raises(Exception, match=text) as refused:
        reader.load().count()
    assert job.access.password == "" or job.access.password not in str(refused.value)


PIPELINE = """
name: secure
bootstrap: {bootstrap}
checkpoint: {folder}/checkpoint
sources:
  records:
    topic: open
    options: {{{options}}}
sinks:
  - name: copied
    from: records
    topic: {{name: piped, value: "'x'", options: {{{options}, ottla.exactly.once: {exactly_once}}}}}
"""
LOGIN_OPTIONS = """kafka.security.protocol: SASL_SSL, kafka.ssl.truststore.type: PEM,
 kafka.ssl.truststore.location: {authority}, kafka.sasl.mechanism: SCRAM-SHA-512,
 kafka.sasl.username: alice, kafka.sasl.password: "${{secret:file:password.txt}}\""""


def test_a_pipeline_logs_in_and_its_plan_shows_no_secret(
    site: Site,
    spark: SparkSession,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    guarantee: dict[str, str],
) -> None:
    access = site.access(SCRAM_512)
    send(access)
    (tmp_path / "password.txt").write_text(access.password)
    options = LOGIN_OPTIONS.format(authority=access.authority).replace("\n", "")
    exactly_once = guarantee["ottla.exactly.once"]
    text = PIPELINE.format(
        bootstrap=access.bootstrap, folder=tmp_path, options=options, exactly_once=exactly_once
    )
    path = tmp_path / "secure.yaml"
    path.write_text(text)
    with ottla.Admin(config=our_config(access)) as admin:
        admin.create_topic("piped")
    for more in ((), ("--json",)):
        assert run_command(["pipeline", "plan", str(path), *more]) == 0
    assert run_command(["pipeline", "validate", str(path), "--words-only"]) == 0
    shown = capfd.readouterr()
    assert "open" in shown.out
    assert access.password not in shown.out + shown.err
    pipeline = open_pipeline(path)
    assert access.password not in repr(pipeline)
    Stage(spark, access.bootstrap, tmp_path).once(pipeline)
    reader = spark.read.format("ottla").options(**ours(access))
    assert reader.option("subscribe", "piped").load().count() > 0
