"""Native record validation: loaded where it is installed, done without where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORY = """
import asyncio, logging, struct
from ottla.broker.data_plane import load_kernels
from ottla.config.topic import TopicConfig
from ottla.log.validate import analyse
from ottla.model.errors import KafkaError
from ottla.protocol.records.batch import build, compute_crc
from ottla.protocol.records.record import NewRecord
from ottla.replica.environment import ThreadPool

logging.basicConfig(level=logging.INFO)
bad = bytearray(build([NewRecord(b"k", b"v", (), 5)]))
bad[61] += 2  # the record says that it is longer than the batch
struct.pack_into(">I", bad, 17, compute_crc(bad))

def verdict():
    try:
        analyse(bytes(bad), TopicConfig(), now_ms=5)
    except KafkaError as refusal:
        return refusal.code.name
    return "taken"

async def main():
    print(verdict())
    await load_kernels(ThreadPool(asyncio.get_running_loop(), None))
    print(verdict())

asyncio.run(main())
"""


def run_program(*first_on_path: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, [*first_on_path, ROOT / "src"]))
    return subprocess.run(
        [sys.executable, "-c", before + STORY],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )


def test_every_record_is_looked_at_before_the_kernels_are_loaded_and_after() -> None:
    pytest.importorskip("numba")
    run = run_program()
    assert run.stdout.split() == ["invalid_record", "invalid_record"]
    assert "record validation uses native kernels" in run.stderr


def test_a_broker_whose_kernels_cannot_be_loaded_goes_on_in_python_and_says_so(
    tmp_path: Path,
) -> None:
    pytest.importorskip("numba")
    (tmp_path / "numba.py").write_text("raise ImportError('a library is missing')")
    run = run_program(tmp_path)
    assert run.stdout.split() == ["invalid_record", "invalid_record"]
    assert (
        "native kernels unavailable, record validation runs in Python: a library is missing"
        in run.stderr
    )


def test_a_broker_without_them_looks_at_headers_and_goes_on() -> None:
    run = run_program(before="import sys; sys.modules['numba'] = None")
    assert run.stdout.split() == ["taken", "taken"]
    assert "native kernels" not in run.stderr


PARSED_ELSEWHERE = """
from ottla.protocol.records import columns
warm_up, calls = columns.warm_up, []

def parse_at_the_same_time():
    calls.append(1)
    if len(calls) < 3:
        raise SystemError("AST constructor recursion depth mismatch (before=90, after=65)")
    warm_up()

columns.warm_up = parse_at_the_same_time
"""


def test_a_broker_tries_again_where_another_thread_parsed_code_at_the_same_time() -> None:
    pytest.importorskip("numba")
    run = run_program(before=PARSED_ELSEWHERE)
    assert run.stdout.split() == ["invalid_record", "invalid_record"]
    assert "record validation uses native kernels" in run.stderr
