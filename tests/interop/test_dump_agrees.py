"""Kafka's own dump tool reads the files we write, and ours says what it says, line for line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.log.files import RealDisk
from ottla.model.clock import WallMs
from ottla.protocol.records import legacy
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType
from ottla.protocol.records.record import NewRecord
from tests.interop.kafka_data import EAGER, fill, until_compacted
from tests.log.compacted_log import Compacted
from tools import kafka_cache, nodes

pytestmark = pytest.mark.spec("TOOL-13", "TOOL-14")

# Gaps are what compaction leaves; the rest is about the logger of a tool, not about a log.
HARMLESS = ("Non-consecutive offsets in ", "SLF4J:", "log4j:")
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


class Dump(NamedTuple):
    lines: list[str]
    complaints: list[str]


def files_of(folder: Path) -> list[Path]:
    found = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES]
    assert found
    return found


def kafka_says(files: Sequence[Path], kind: str) -> Dump:
    try:
        done = kafka_cache.run_tool(
            "kafka-dump-log", "--print-data-log", "--files", ",".join(map(str, files)), kind=kind
        )
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    return said(done)


def ottla_says(files: Sequence[Path]) -> Dump:
    command = [sys.executable, "-m", "ottla", "log", "dump", "--print-data-log", *map(str, files)]
    return said(subprocess.run(command, capture_output=True, text=True, check=False))


def said(done: subprocess.CompletedProcess[str]) -> Dump:
    assert done.returncode == 0, done.stderr
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return Dump(lines, done.stderr.splitlines())


def assert_agreed(files: Sequence[Path], kind: str = "server") -> Dump:
    """Both say the same, and what they complain of is only that compaction left gaps."""
    theirs, ours = kafka_says(files, kind), ottla_says(files)
    for mine, other in zip(ours.lines, theirs.lines, strict=True):
        assert mine == other
    for complaints in (theirs.complaints, ours.complaints):
        odd = [
            line
            for line in complaints
            if not line.startswith(HARMLESS) and " is followed by " not in line
        ]
        assert odd == []
    return ours


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that `ottla serve` wrote, after it has compacted what there was."""
    folder = tmp_path_factory.mktemp("written")
    with nodes.ottla(folder, EAGER) as node:
        fill(node.bootstrap, transactions=False)
        until_compacted(node.data_dir)
    return folder / "data"


@pytest.mark.parametrize("kind", ["server", "server-3.9"])
def test_every_file_of_a_broker_is_read_without_complaint(data: Path, kind: str) -> None:
    files = files_of(data)
    assert len({path.parent for path in files}) == 14
    assert sum(path.suffix == ".log" for path in files) > 14  # several segments
    ours = assert_agreed(files, kind)
    assert any(" is followed by " in line for line in ours.complaints)  # it was compacted


def test_a_compacted_log_with_transactions_is_read_without_complaint(tmp_path: Path) -> None:
    compacted = Compacted(tmp_path / "t-0", RealDisk(), index_interval_bytes="0")
    for number in range(120):
        compacted.now_ms = WallMs(compacted.now_ms + 1)
        value = None if number % 7 == 0 else b"%d" % number
        compacted.put(
            (b"k%d" % (number % 9), value), producer=number % 3 - 1, codec=Codec(number % 5)
        )
        if number % 10 == 9:
            for producer in (0, 1):
                compacted.end(producer, ControlType(number % 20 == 9))
        if number % 40 == 39:
            compacted.roll()
        if number == 89:
            compacted.clean()
    compacted.log.close()
    compacted.log.deleted_segments.purge(WallMs(compacted.now_ms + 100_000))
    files = files_of(tmp_path)
    assert {path.suffix for path in files} == set(SUFFIXES)
    assert_agreed(files)


def test_the_older_formats_are_read_alike(tmp_path: Path) -> None:
    content, offset = b"", 0
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            records = [NewRecord(b"k%d" % n, b"v", (), 1_000 + n) for n in range(3)]
            content += legacy.build(records, magic=magic, codec=codec, base_offset=offset)
            offset += len(records)
    (tmp_path / "00000000000000000000.log").write_bytes(content)
    assert_agreed(files_of(tmp_path))
