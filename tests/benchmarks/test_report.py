"""How readings become verdicts."""

from __future__ import annotations

from benchmarks import report
from benchmarks.scenario import cores


def only(metric: str, kafka: list[float], ottla: list[float], busy: float = 1.0) -> report.Row:
    rounds = {
        "kafka": [{metric: value} for value in kafka],
        "ottla": [{metric: value, cores(metric): busy} for value in ottla],
    }
    (row,) = report.rows("a scenario", rounds)
    return row


def test_a_row_holds_medians_and_their_ratio() -> None:
    row = only("raw produce MB/s", [100, 110, 500], [300, 220, 10])
    assert row.median_of("kafka") == 110
    assert row.ratio_of("ottla") == 2.0
    assert row.verdict == "met"


def test_a_throughput_below_the_goal_is_missed() -> None:
    assert only("raw produce MB/s", [100], [119]).verdict == "MISSED"


def test_a_broker_that_waited_for_its_client_is_not_blamed() -> None:
    assert only("raw produce MB/s", [100], [110], busy=0.3).verdict == "client-bound"


def test_less_is_better_for_latency_and_memory() -> None:
    assert only("one request p99 ms", [1.0], [0.5]).verdict == "met"
    assert only("idle MB", [400.0], [41.0]).verdict == "MISSED"


def test_a_floor_is_judged_beside_the_goal() -> None:
    rounds = {"kafka": [{"idle MB": 900.0}], "ottla": [{"idle MB": 85.0}]}
    (row,) = report.rows("cold start, one topic", rounds)
    assert row.verdict == "met, floor 80 MISSED"


def test_a_contender_that_did_not_take_part_leaves_its_cells_empty() -> None:
    table = report.table([only("requests/s", [1000], [1500])])
    assert table.splitlines()[-1] == (
        "| a scenario | requests/s | 1,000 (1,000-1,000) | 1,500 (1,500-1,500) | 1.50 |  |  | met |"
    )


def test_json_keeps_every_reading() -> None:
    (kept,) = report.as_json([only("requests/s", [1, 2, 3], [4, 5, 6])])
    assert kept["contenders"]["ottla"] == {"median": 5, "readings": [4, 5, 6], "ratio": 2.5}
