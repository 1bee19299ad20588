from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.reassign.moves import as_json, current, proposed, read
from ottla.client.admin import Partition, Topic
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


def topic(name: str, partitions: int, copies: int = 1) -> Topic:
    held = tuple(range(copies))
    return Topic(
        name, None, False, tuple(Partition(at, 0, 0, held, held, ()) for at in range(partitions))
    )


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 5))
def test_a_proposal_spreads_leaders_evenly_over_different_brokers(
    partitions: int, brokers: int, copies: int
) -> None:
    copies = min(copies, brokers)
    plan = proposed([topic("t", partitions, copies)], range(10, 10 + brokers))
    leaders = [replicas[0] for replicas in plan.values()]
    counts = [leaders.count(id) for id in range(10, 10 + brokers)]
    assert max(counts) - min(counts) <= 1
    assert all(len(set(replicas)) == copies for replicas in plan.values())


def test_more_copies_than_brokers_are_refused() -> None:
    with pytest.raises(UserError, match="t: replication factor 3 exceeds the number of brokers"):
        proposed([topic("t", 1)], [0, 1], copies=3)


def test_a_plan_that_is_written_is_read_again(tmp_path: Path) -> None:
    plan = current([topic("t", 2, 2)])
    assert plan == {TopicPartition("t", 0): (0, 1), TopicPartition("t", 1): (0, 1)}
    file = tmp_path / "plan.json"
    file.write_text(as_json(plan))
    assert read(file) == plan
    assert json.loads(as_json(plan))["version"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected JSON such as"),
        ("{}", "expected JSON such as"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "at least one"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "different"),
    ],
)
def test_a_file_that_is_no_plan_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(UserError, match=f"{re.escape(str(file))}.*{said}"):
        read(file)
    with pytest.raises(UserError, match="No such file"):
        read(tmp_path / "none")
