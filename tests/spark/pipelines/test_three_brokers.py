"""Every ready-made job again, from its template as it is, on a cluster of three brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ottla
from ottla.client.admin import NewTopic
from ottla.spark.pipelines import templates
from ottla.testing import Broker
from tests.cluster.three_brokers import ThreeBrokers
from tests.spark.pipelines import template_checks
from tests.spark.pipelines.delayed_delivery import FEW, delay, retry
from tests.spark.pipelines.jobs import Sent, Stage, headers, read
from tests.store.zookeeper_server import Ensemble, zookeeper_ensemble


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    folder = tmp_path_factory.mktemp("three-brokers")
    with (
        zookeeper_ensemble(tmp_path_factory.mktemp("zookeeper"), 1) as servers,
        ThreeBrokers(Ensemble(servers), folder) as brokers,
    ):
        yield brokers


@pytest.fixture
def stage(cluster: ThreeBrokers, spark: SparkSession, tmp_path: Path) -> Iterator[Stage]:
    """Without the topics of the job before: templates share names."""
    yield Stage(spark, cluster.bootstrap, tmp_path)
    with ottla.Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.delete_topics(admin.list_topics()).all()
    cluster.assert_no_tracebacks()


def mirror(stage: Stage) -> None:
    topics = ("orders", "payments")
    with Broker() as other:
        target = other.bootstrap_servers
        stage.topics(*topics)
        with ottla.Admin(bootstrap_servers=target) as admin:
            admin.create_topics([NewTopic(topic, 2) for topic in topics]).all()
        for topic in topics:
            stage.send(topic, [Sent(str(number).encode(), b"k") for number in range(100)])
        text = templates.text("mirror").replace("localhost:9192", target)
        stage.once(stage.pipeline(text.replace("localhost:9092", stage.servers)))
        for topic in topics:
            origin, copies = stage.read(topic), read(target, topic)
            assert [(one.partition, one.value) for one in copies] == [
                (one.partition, one.value) for one in origin
            ]
            assert {headers(one)["ottla.mirror.origin"] for one in copies} == {stage.servers}


JOBS: dict[str, Callable[[Stage], None]] = {
    "audit": template_checks.audit,
    "compact": template_checks.compact,
    "delay": lambda stage: delay(stage, FEW),
    "land": template_checks.land,
    "mirror": mirror,
    "retry": lambda stage: retry(stage, FEW),
    "route": template_checks.route,
    "trace": template_checks.trace,
    "ttl": template_checks.ttl,
    "views": template_checks.views,
}
QUICK = ("route",)
"""A topic in, several out, dead letters and their replay: it runs every time."""


def test_no_template_is_left_out() -> None:
    assert sorted(JOBS) == sorted(templates.names())


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, job in JOBS.items()
    ],
)
def test_a_template_works_on_three_brokers(stage: Stage, job: Callable[[Stage], None]) -> None:
    job(stage)
