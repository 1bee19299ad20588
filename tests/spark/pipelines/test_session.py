"""The session a pipeline runs in: its settings, and what a file puts over them."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os, sys
from ottla.spark.pipelines.session import session

spark = session("shop", "local[1]", {"spark.sql.shuffle.partitions": "7"}, "hdfs://far/away")
get = spark.conf.get
assert spark.sparkContext.master == "local[1]"
assert get("spark.sql.shuffle.partitions") == "7", "the file's word stands"
assert get("spark.sql.session.timeZone") == "UTC"
assert get("spark.ui.enabled") == "false"
assert os.environ["PYSPARK_PYTHON"] == sys.executable
KEPT = "spark.sql.streaming.checkpointFileManagerClass"
assert get(KEPT, None) is None, "Spark knows best how to write elsewhere"
for path in ("./checkpoints", "file:///tmp/checkpoints"):
    session("shop", "local[1]", {}, path)
    assert get(KEPT).endswith("FileSystemBasedCheckpointFileManager")
    spark.conf.unset(KEPT)
session("shop", "local[1]", {KEPT: "mine"}, "./checkpoints")
assert get(KEPT) == "mine", "the file's word stands"
spark.conf.unset(KEPT)
spark.read.format("ottla").option("kafka.bootstrap.servers", "x:1").option("subscribe", "t").load()
spark.stop()
"""


def test_a_session_knows_the_source_and_what_the_file_says() -> None:
    """In a process of its own: there is one session a process, and the tests have theirs."""
    env = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stderr == "", "nothing that is nobody's concern"
