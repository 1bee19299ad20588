from __future__ import annotations

from pathlib import Path

import pytest

import ottla
from ottla.cli.kafka.group_resets import iso_duration_ms
from ottla.model.errors import UserError
from tests.cli.ottla_program import Run

RESET = ("kafka-consumer-groups.sh", "--reset-offsets", "--group")


@pytest.fixture
def filled(run: Run, topic: str) -> str:
    run("produce", topic, "--partition", 0, stdin="a\nb\nc\n")
    return topic


def offset(admin: ottla.Admin, group: str) -> int:
    found = admin.list_group_offsets(group).all()
    return max(one.offset for one in found.values())


def test_offsets_are_shown_and_with_execute_moved(
    run_kafka: Run, admin: ottla.Admin, filled: str, group: str
) -> None:
    words = (*RESET, group, "--all-topics")
    shown = run_kafka(*words, "--to-latest").out.splitlines()
    assert shown[:2] == ["", "GROUP           TOPIC           PARTITION  NEW-OFFSET"]
    assert [row.split()[2:] for row in shown[2:]] == [["0", "3"], ["1", "0"]]
    assert offset(admin, group) == 0
    for how, wanted in (
        (("--to-latest",), 3),
        (("--shift-by", "-1"), 2),
        (("--to-offset", "1"), 1),
        (("--to-datetime", "2999-01-01T00:00:00.000"), 3),
        (("--to-current",), 3),
        (("--by-duration", "PT1H"), 0),
        (("--to-earliest",), 0),
    ):
        assert run_kafka(*words, *how, "--execute").code == 0
        assert offset(admin, group) == wanted, how


def test_an_export_is_read_again(
    run_kafka: Run, admin: ottla.Admin, filled: str, group: str, tmp_path: Path
) -> None:
    words = (*RESET, group, "--topic", f"{filled}:0")
    exported = run_kafka(*words, "--to-latest", "--export").out
    assert exported == f"{filled},0,3\n\n"
    file = tmp_path / "plan.csv"
    file.write_text(exported)
    assert run_kafka(*RESET, group, "--from-file", file, "--execute").code == 0
    assert offset(admin, group) == 3


def test_a_duration_is_as_iso_8601_has_it() -> None:
    assert iso_duration_ms("P1DT2H30M") == 95_400_000
    assert iso_duration_ms("PT5S") == 5_000
    for text in ("P", "5m", "PT"):
        with pytest.raises(UserError, match=f"--by-duration '{text}'"):
            iso_duration_ms(text)


def test_mistakes_are_said(run_kafka: Run, group: str, tmp_path: Path) -> None:
    assert "--all-topics, --topic" in run_kafka(*RESET, group, "--to-latest").out
    none = run_kafka(*RESET, group, "--all-topics").out
    assert "takes one of these options" in none
    run_kafka(*RESET, group, "--from-file", tmp_path / "none").failed(1, "No such file")
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b,c\n")
    run_kafka(*RESET, group, "--from-file", bad).failed(1, "expected lines such as")
