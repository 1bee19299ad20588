from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.kafka.main import run
from tests.log.partition_files import batches_of_every_codec, write_segment

NAME = "00000000000000000000"


@pytest.mark.spec("TOOL-13", "TOOL-14")
@pytest.mark.parametrize(
    "tool", ["kafka.tools.DumpLogSegments", "org.apache.kafka.tools.DumpLogSegments"]
)
def test_the_dump_tool_reads_several_files(
    tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "orders-0"
    write_segment(folder, batches_of_every_codec(10), interval_bytes=0)
    files = f"{folder}/{NAME}.log,{folder}/{NAME}.index"
    assert run("kafka-run-class.sh", [tool, "--files", files, "--print-data-log"]) == 0
    shown = capsys.readouterr().out
    record = next(line for line in shown.splitlines() if line.startswith("| offset: "))
    for field in ("CreateTime:", "keySize:", "valueSize:", "sequence:", "headerKeys:", "payload:"):
        assert field in record
    assert f"Dumping {folder}/{NAME}.index" in shown


def test_other_classes_and_missing_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("kafka-run-class.sh", ["kafka.tools.Other"]) == 1
    assert "expected kafka.tools.DumpLogSegments" in capsys.readouterr().err
    assert run("kafka-run-class.sh", []) == 1
    assert run("kafka-run-class.sh", ["kafka.tools.DumpLogSegments"]) == 1
    assert "--files" in capsys.readouterr().err
