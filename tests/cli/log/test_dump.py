"""Promises of `ottla log dump`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.cli.main import run
from tests.log.partition_files import batches_of_every_codec, write_segment

pytestmark = pytest.mark.spec("TOOL-13")

NAME = "00000000000000000000"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write_segment(tmp_path / "orders-0", batches_of_every_codec(10), interval_bytes=0)
    return tmp_path / "orders-0"


def test_every_file_of_a_partition_is_dumped_in_the_order_asked(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(partition / f"{NAME}.{kind}") for kind in ("log", "index", "timeindex")]
    assert run(["log", "dump", *paths, "--deep-iteration"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert [line for line in lines if line.startswith("Dumping")] == [
        f"Dumping {path}" for path in paths
    ]
    assert sum(line.startswith("| offset: ") for line in lines) == 50
    assert shown.err == ""


def test_json_gives_one_object_a_line(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "dump", str(partition / f"{NAME}.log"), "--print-data-log", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    batch = next(row for row in rows if row.get("kind") == "row")
    assert batch["baseOffset"] == 0 and batch["isvalid"] is True
    assert batch["deleteHorizonMs"] is None
    assert sum(row.get("kind") == "record" for row in rows) == 50


def test_garbage_ends_with_exit_code_1_and_the_first_bad_byte(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = partition / f"{NAME}.log"
    good = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"garbage" * 20)
    assert run(["log", "dump", str(path)]) == 1
    shown = capsys.readouterr()
    assert f"Found 140 invalid bytes at the end of {path.name}" in shown.out
    assert f"{path} is damaged\nbyte {good}: " in shown.err


def test_an_unknown_file_is_passed_over(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "dump", str(partition / "notes.txt")]) == 0
    assert capsys.readouterr().err == f"Ignoring unknown file {partition / 'notes.txt'}\n"


@pytest.mark.parametrize("name", ["00000000000000000009.log", "first.log"])
def test_a_file_that_cannot_be_read_is_named_in_one_line(
    partition: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "dump", str(partition / name)]) == 2
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("option", [None, "--verify-index-only"])
def test_an_index_that_points_before_its_log_is_a_mismatch_not_a_failure(
    partition: Path, option: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    index = partition / f"{NAME}.index"
    index.write_bytes(b"\0\0\0\5" + b"\xff" * 4)
    run(["log", "dump", str(index), *filter(None, [option])])
    assert f"Mismatches in :{index}" in capsys.readouterr().err


def test_a_failure_to_read_names_the_file(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (partition / f"{NAME}.log").unlink()
    assert run(["log", "dump", str(partition / f"{NAME}.index")]) == 2
    assert f"{NAME}.log: No such file or directory" in capsys.readouterr().err
