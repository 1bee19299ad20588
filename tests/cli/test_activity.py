from __future__ import annotations

from ottla.cli.activity import Sample, rates
from ottla.cli.groups.lag import PartitionLag
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from tests.cli.ottla_program import Run

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def sample(at_ms: int, ends: dict[TopicPartition, int], committed: int) -> Sample:
    lags = [PartitionLag(A0, committed, ends[A0], None)]
    return Sample(MonoMs(at_ms), ends, {"g": ("Stable", lags)})


def test_rates_are_what_grew_in_the_time_between_and_the_busiest_come_first() -> None:
    before = sample(1_000, {A0: 10, A1: 0, B0: 100}, committed=4)
    now = sample(3_000, {A0: 30, A1: 10, B0: 300}, committed=10)
    topics, partitions, groups = rates(before, now, partitions=True)
    assert topics.rows == [("b", 1, 100.0, 300), ("a", 2, 15.0, 40)]
    assert [row[:3] for row in partitions.rows] == [("b", 0, 100.0), ("a", 0, 10.0), ("a", 1, 5.0)]
    assert groups.rows == [("g", "Stable", 0, 3.0, 20, 7)]


def test_what_is_new_or_went_back_has_no_rate() -> None:
    before = sample(0, {A0: 100}, committed=90)
    now = sample(1_000, {A0: 5, B0: 7}, committed=2)
    topics, groups = rates(before, now, partitions=False)
    assert [row[2] for row in topics.rows] == [0.0, 0.0]
    assert groups.rows == [("g", "Stable", 0, 0.0, 3, None)]


def test_top_shows_topics_and_groups_once_for_programs(run: Run, topic: str, group: str) -> None:
    found = run("top", "--once", "--interval", 0.1, "--json").json
    assert {"topic": topic, "partitions": 2, "records/s": 0.0, "end_offsets": 0} in found["topics"]
    assert group in {row["group"] for row in found["groups"]}
    assert "records/s" in run("top", "--once", "--interval", 0.1, "--partitions").out
