"""A standalone Spark cluster on this machine: a master and two workers, each a process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.spark.quick_jvm import QUICK
from tools.nodes import free_ports

DEADLINE_S = 300.0


class StandaloneCluster:
    """Where it is, and its processes."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.work = folder / "work"
        self.log = folder / "spark.log"
        self.workers: list[subprocess.Popen[bytes]] = []

    def executors(self) -> list[Path]:
        """The working folders of executors that were started."""
        return [path for path in self.work.glob("app-*/*") if (path / "stderr").exists()]


@contextmanager
def standalone_cluster(
    folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[StandaloneCluster]:
    """Two workers of one core each; `environment` is put over that of their processes."""
    port, ui = free_ports(2)
    home = Path(sys.executable).parent
    env = {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PATH": f"{home}:{os.environ['PATH']}",
        **(environment or {}),
    }
    cluster = StandaloneCluster(f"spark://127.0.0.1:{port}", folder)
    with cluster.log.open("wb") as out:

        def start(name: str, *words: str) -> subprocess.Popen[bytes]:
            command = [str(home / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
            return subprocess.Popen(command, env=env, stdout=out, stderr=out)

        place = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))
        master = start("master.Master", *place)
        try:
            for _ in range(2):
                worker = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
                process = start("worker.Worker", *worker, "--webui-port", "0", cluster.url)
                cluster.workers.append(process)
            deadline = time.monotonic() + DEADLINE_S
            while cluster.log.read_text(errors="replace").count("Registering worker") < 2:
                said = cluster.log.read_text(errors="replace")[-4_000:]
                assert time.monotonic() < deadline, said
                assert all(each.poll() is None for each in (master, *cluster.workers)), said
                time.sleep(0.1)
            yield cluster
        finally:
            for process in (*cluster.workers, master):
                process.terminate()
            for process in (*cluster.workers, master):
                process.wait(60)
