"""Workers are forked with their imports, and work."""

from __future__ import annotations

import os
import subprocess
import sys

FORKED = """
import os, sys
from ottla.spark import worker_daemon

worker_daemon.preload()
loaded = {"pyspark.worker", "pyarrow.compute", "numba"}
loaded |= {"ottla.spark.sink_steps", "ottla.spark.span_fetcher", "ottla.security.sasl.client"}
assert loaded <= sys.modules.keys(), loaded - sys.modules.keys()
assert "pandas" not in sys.modules and "hypothesis" not in sys.modules
if os.fork() == 0:
    import pyarrow as pa, pyarrow.compute as pc
    from ottla.protocol.records.columns.decode import decode_batches
    from ottla.protocol.records.columns.encode import encode_batches

    table = pa.table({"v": pa.chunked_array([pa.array(range(100_000))] * 8)})
    assert table.group_by("v").aggregate([("v", "count")]).num_rows == 100_000, "with threads"
    (batch,) = encode_batches(pa.array([b"k"] * 9), pa.array([b"v"] * 9))
    assert decode_batches(batch.data).rows == 9
    os._exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""

SEEDS = """
import os
import numpy.random
from ottla.spark import worker_daemon

worker_daemon.preload()
for _ in range(2):
    if os.fork() == 0:
        print(numpy.random.randint(2**60), flush=True)
        os._exit(0)
    os.wait()
"""

PLANNING = """
import sys
import ottla.spark.source, ottla.spark.stream_offsets, ottla.spark.batch_reader

of_tasks = {"ottla.spark.span_fetcher", "ottla.client.consumer.fetch.record_decoder"}
of_logins = {"ottla.security.sasl.client", "urllib.request"}
assert not (of_tasks | of_logins) & sys.modules.keys()
"""

OF_SPARK = """
import sys, pyarrow as pa
from ottla.spark.pipelines.session import session

def loaded(batches):
    import sys, pyspark
    is_compiled = ".zip" not in pyspark.__file__
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"n": ["numba" in sys.modules and is_compiled]})

spark = session("shop", "local[1]", {})
assert [row.n for row in spark.range(1).mapInArrow(loaded, "n boolean").collect()] == [True]
spark.stop()
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)


def test_a_fork_has_everything_and_its_libraries_work() -> None:
    done = run(FORKED)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr[-3_000:]


def test_forks_draw_different_numbers() -> None:
    first, second = run(SEEDS).stdout.split()
    assert first != second


def test_processes_that_plan_import_neither_what_tasks_need_nor_what_logins_do() -> None:
    done = run(PLANNING)
    assert done.returncode == 0, done.stderr[-3_000:]


def test_workers_of_a_pipeline_begin_with_their_imports() -> None:
    done = run(OF_SPARK)
    assert done.returncode == 0, done.stderr[-3_000:]
