"""The same file on a Spark cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.client.admin import NewTopic
from ottla.spark.pipelines import templates
from ottla.testing import Broker
from tests.spark.pipelines.jobs import read
from tests.spark.quick_jvm import QUICK, QUICK_SPARK
from tools.nodes import free_ports

DEADLINE_S = 300.0
RECORDS = 400


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster with two workers of one core each."""
    port, ui = free_ports(2)
    home = Path(sys.executable).parent
    env = {
        **os.environ,
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PATH": f"{home}:{os.environ['PATH']}",
    }
    url = f"spark://127.0.0.1:{port}"
    log = tmp_path / "spark.log"
    with log.open("wb") as out:

        def start(name: str, *words: str) -> subprocess.Popen[bytes]:
            command = [str(home / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
            return subprocess.Popen(command, env=env, stdout=out, stderr=out)

        processes = [
            start("master.Master", "--host", "127.0.0.1", "--port", str(port),
                  "--webui-port", str(ui))
        ]  # fmt: skip
        try:
            for _ in range(2):
                worker = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
                processes.append(start("worker.Worker", *worker, "--webui-port", "0", url))
            deadline = time.monotonic() + DEADLINE_S
            while log.read_text(errors="replace").count("Registering worker") < 2:
                assert time.monotonic() < deadline, log.read_text(errors="replace")[-4_000:]
                time.sleep(0.1)
            yield url
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait(60)


@pytest.mark.slow
def test_a_pipeline_runs_on_a_cluster_as_it_does_on_one_machine(
    master: str, tmp_path: Path
) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with ottla.Admin(bootstrap_servers=servers) as admin:
            topics = ("orders", "payments", "traces")
            admin.create_topics([NewTopic(name, 2) for name in topics]).all()
        with ottla.Producer(bootstrap_servers=servers) as producer:
            for number in range(RECORDS):
                producer.send("orders", b"x", key=str(number).encode())
        (tmp_path / "trace.yaml").write_text(templates.text("trace"))
        command = [sys.executable, "-m", "ottla", "pipeline", "run", "trace.yaml", "--once"]
        command += ["--master", master, "--set", f"bootstrap={servers}"]
        command += ["--set", f"spark={json.dumps(QUICK_SPARK)}"]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
        keys = [json.loads(one.value or b"")["key"] for one in read(servers, "traces")]
    assert sorted(keys, key=int) == [str(number) for number in range(RECORDS)]
    ran = [path for path in (tmp_path / "work").glob("app-*/*") if (path / "stderr").exists()]
    assert len(ran) == 2, "both workers had a part in it"
