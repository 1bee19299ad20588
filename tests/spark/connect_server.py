"""A Spark Connect server on this machine: Spark's own, from the PySpark package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.process import wait_for
from tests.spark.quick_jvm import QUICK_SPARK
from tools.nodes import free_ports

DEADLINE_S = 180.0
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
STARTED = "Spark Connect server started"


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Its address, `sc://…`; tasks run on two threads with the Python that runs the tests."""
    (port,) = free_ports(1)
    home = Path(sys.executable).parent
    settings = {
        **QUICK_SPARK,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "spark"),
    }
    command = [str(home / "spark-submit"), "--master", "local[2]", "--class", SERVER]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    env |= {"PATH": f"{home}:{os.environ['PATH']}"}
    log = folder / "connect.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)
    try:

        def started() -> bool:
            said = log.read_text(errors="replace")
            assert process.poll() is None, said[-4_000:]
            return STARTED in said

        wait_for(started, DEADLINE_S, "the Spark Connect server")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
