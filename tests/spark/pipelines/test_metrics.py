"""A run's numbers as Prometheus asks for them."""

from __future__ import annotations

import socket
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest

from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.spark.pipelines.metrics import PipelineMetrics
from ottla.spark.pipelines.progress import QueryProgress


def test_the_last_batch_of_each_query_is_offered() -> None:
    metrics = PipelineMetrics()
    metrics.on_batch(QueryProgress("clean", WallMs(0), 1, 10, 5.0, 9, 50, 0))
    metrics.on_batch(QueryProgress("clean", WallMs(0), 2, 20, 5.0, 9, 50, 0, 7, 1.5, late_rows=4))
    metrics.on_batch(QueryProgress("clean", WallMs(0), 2, 20, 5.0, 9, 50, 0, 7, 1.5, late_rows=1))
    text = generate_latest(metrics.registry).decode()
    assert 'ottla_pipeline_rows_in{query="clean"} 20.0' in text
    assert 'ottla_pipeline_lag_records{query="clean"} 7.0' in text
    assert 'ottla_pipeline_lag_s{query="clean"} 1.5' in text
    assert 'ottla_pipeline_late_rows_total{query="clean"} 5.0' in text


def test_numbers_are_served_and_a_port_that_is_taken_is_said() -> None:
    metrics = PipelineMetrics()
    metrics.on_batch(QueryProgress("clean", WallMs(0), 1, 10, 5.0, 9, 50, 0))
    port = metrics.serve(0)
    with urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        assert b'ottla_pipeline_batch{query="clean"} 1.0' in page.read()
    with socket.create_server(("0.0.0.0", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--metrics-port {number}: "):
            metrics.serve(number)
