from __future__ import annotations

from pathlib import Path

import pytest

from tools import metrics
from tools.metrics import Metric

TEXT = """# HELP kafka_log_log_size Bytes of a log.
# TYPE kafka_log_log_size gauge
kafka_log_log_size{partition="0",topic="t"} 5.0
# HELP kafka_network_requestmetrics_local_time_ms Work.
# TYPE kafka_network_requestmetrics_local_time_ms histogram
kafka_network_requestmetrics_local_time_ms_bucket{le="1",request="Fetch"} 1.0
kafka_network_requestmetrics_local_time_ms_bucket{le="+Inf",request="Fetch"} 1.0
kafka_network_requestmetrics_local_time_ms_count{request="Fetch"} 1.0
kafka_network_requestmetrics_local_time_ms_sum{request="Fetch"} 0.5
# HELP kafka_server_brokertopicmetrics_bytes_in_total Bytes in.
# TYPE kafka_server_brokertopicmetrics_bytes_in_total counter
kafka_server_brokertopicmetrics_bytes_in_total{topic="t"} 5.0
"""
SIZE = Metric("kafka_log_log_size", "gauge", ("partition", "topic"), "Bytes of a log.")
TIME = Metric("kafka_network_requestmetrics_local_time_ms", "histogram", ("request",), "Work.")
BYTES_IN = Metric(
    "kafka_server_brokertopicmetrics_bytes_in_total", "counter", ("topic",), "Bytes in."
)


def test_a_metric_is_shown_as_a_scraper_sees_it() -> None:
    assert list(metrics.read(TEXT)) == [SIZE, TIME, BYTES_IN]


@pytest.mark.parametrize(
    ("shown", "bean"),
    [
        (SIZE, "kafka.log:type=Log,name=Size"),
        (TIME, "kafka.network:type=RequestMetrics,name=LocalTimeMs"),
        (BYTES_IN, "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"),
        (
            Metric("kafka_server_brokertopicmetrics_all_topics_bytes_in_total", "counter", (), ""),
            "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
        ),
        (Metric("kafka_log_logcleaner_rounds_total", "counter", (), ""), ""),
    ],
)
def test_a_name_is_kafkas_in_another_spelling(shown: Metric, bean: str) -> None:
    assert metrics.bean(shown) == bean


@pytest.mark.spec("MON-01", "MON-25")
def test_a_running_broker_can_be_asked_for_every_metric_on_the_page() -> None:
    shown = list(metrics.read(metrics.scrape()))
    names = [one.name for one in shown]
    assert len(set(names)) == len(names)
    assert all(one.doc.endswith(".") for one in shown)
    logs = {one.name for one in shown if one.labels == ("partition", "topic")}
    assert {name.removeprefix("kafka_log_log_") for name in logs} == {
        "size",
        "num_log_segments",
        "log_start_offset",
        "log_end_offset",
    }
    unused = {*metrics.OURS, *metrics.SPELLED_OTHERWISE} - set(names)
    assert not unused
    assert metrics.page(shown) == (metrics.ROOT / metrics.PAGE).read_text()


def test_a_stale_page_fails_the_check_and_writing_it_mends_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/metrics.md").write_text("old")
    assert metrics.main(["--check"], tmp_path) == 1
    assert "run make metrics" in capsys.readouterr().err
    assert metrics.main([], tmp_path) == 0
    assert metrics.main(["--check"], tmp_path) == 0
