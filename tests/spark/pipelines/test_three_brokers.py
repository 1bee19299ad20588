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
from tests.spark.pipelines import test_jobs, test_later
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
    "audit": test_jobs.test_audit_finds_the_one_record_that_was_lost,
    "compact": test_jobs.test_compact_keeps_the_latest_value_of_every_key,
    "delay": test_later.test_delay_delivers_in_order_and_never_before_the_time,
    "land": test_jobs.test_land_has_every_record_once_with_its_place_however_often_a_batch_runs,
    "mirror": mirror,
    "retry": test_later.test_retry_gives_back_later_each_time_and_at_last_gives_up,
    "route": (
        test_jobs.test_route_obeys_headers_then_predicates_and_what_it_cannot_read_can_be_replayed
    ),
    "trace": test_jobs.test_trace_tells_of_every_record_where_and_when,
    "ttl": test_jobs.test_ttl_passes_on_what_is_still_alive,
    "views": test_jobs.test_views_cleans_counts_and_keeps_sessions,
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
