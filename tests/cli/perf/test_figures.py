from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.perf.figures import percentile, rate, summary


def test_a_percentile_is_a_value_that_was_measured() -> None:
    hundred = list(range(1, 101))
    assert [percentile(hundred, share) for share in (50, 95, 99, 99.9, 100)] == [
        50,
        95,
        99,
        100,
        100,
    ]
    assert percentile([7], 0) == 7


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_percentiles_rise_to_the_worst(times: list[int]) -> None:
    told = summary(times)
    assert told["p50"] <= told["p95"] <= told["p99"] <= told["p99.9"] <= told["max"]


def test_nothing_measured_has_no_summary_and_a_rate_is_per_second() -> None:
    assert summary([]) == {}
    told = rate(1000, 1_000_000, 500_000_000)
    assert (told["records/s"], told["MB/s"], told["seconds"]) == (2000, 2.0, 0.5)
