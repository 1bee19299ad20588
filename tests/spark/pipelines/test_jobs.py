"""Each ready-made job, from its template as it is, does what its first line says."""

from __future__ import annotations

import pytest

from tests.spark.pipelines import template_checks
from tests.spark.pipelines.jobs import Stage


@pytest.mark.spec("APP-03", "APP-22")
def test_land_has_every_record_once_with_its_place_however_often_a_batch_runs(stage: Stage) -> None:
    template_checks.land(stage)


@pytest.mark.spec("APP-14")
def test_ttl_passes_on_what_is_still_alive(stage: Stage) -> None:
    template_checks.ttl(stage)


@pytest.mark.spec("APP-17", "APP-16")
def test_route_obeys_headers_then_predicates_and_what_it_cannot_read_can_be_replayed(
    stage: Stage,
) -> None:
    template_checks.route(stage)


@pytest.mark.spec("APP-18")
def test_trace_tells_of_every_record_where_and_when(stage: Stage) -> None:
    template_checks.trace(stage)


@pytest.mark.spec("APP-19")
def test_audit_finds_the_one_record_that_was_lost(stage: Stage) -> None:
    template_checks.audit(stage)


@pytest.mark.spec("APP-05")
def test_compact_keeps_the_latest_value_of_every_key(stage: Stage) -> None:
    template_checks.compact(stage)


@pytest.mark.spec("APP-06")
def test_views_cleans_counts_and_keeps_sessions(stage: Stage) -> None:
    template_checks.views(stage)
