"""The same file on a Spark cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import ottla
from ottla.client.admin import NewTopic
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.executors import environment_archive
from ottla.testing import Broker
from tests.spark.pipelines.jobs import read
from tests.spark.pipelines.schema_registry import SchemaRegistry
from tests.spark.quick_jvm import QUICK_SPARK
from tests.spark.standalone_cluster import (
    DEADLINE_S,
    StandaloneCluster,
    standalone_cluster,
)

RECORDS = 400
COPY = """
name: copy
sources: {orders: {topic: orders, format: string, options: {maxOffsetsPerTrigger: 20}}}
sinks: [{name: traces, from: orders, topic: {name: traces, value: value}}]
"""


PRICED = """
name: priced
sources:
  orders: {{topic: orders, format: string}}
  prices: {{database: "sqlite://{prices}", table: prices, schema: "item STRING, price INT"}}
steps:
  - {{name: priced, sql: "SELECT value AS item, price FROM orders JOIN prices ON item = value"}}
sinks:
  - name: traces
    from: priced
    topic: {{name: traces, value: {{format: avro, registry: "{registry}"}}}}
"""
"""Its tasks ask a database and a schema registry."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path) as running:
        yield running


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker with records in `orders`."""
    with Broker() as broker:
        with ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            topics = ("orders", "payments", "traces")
            admin.create_topics([NewTopic(name, 2) for name in topics]).all()
        with ottla.Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(RECORDS):
                producer.send("orders", str(number).encode(), key=str(number).encode())
        yield broker.bootstrap_servers


def arguments(path: Path, master: str, servers: str) -> list[str]:
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(path), "--once"]
    command += ["--master", master, "--set", f"bootstrap={servers}"]
    return [*command, "--set", f"spark={json.dumps(QUICK_SPARK)}"]


@pytest.mark.slow
def test_a_pipeline_runs_on_a_cluster_as_it_does_on_one_machine(
    cluster: StandaloneCluster, servers: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.yaml"
    path.write_text(templates.text("trace"))
    command = arguments(path, cluster.url, servers)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    keys = [json.loads(one.value or b"")["key"] for one in read(servers, "traces")]
    assert sorted(keys, key=int) == [str(number) for number in range(RECORDS)]
    assert len(cluster.executors()) == 2, "both workers had a part in it"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_worker_killed_in_the_middle_loses_nothing_and_repeats_nothing(
    cluster: StandaloneCluster, servers: str, tmp_path: Path
) -> None:
    """Its executor dies with it; the other worker does the rest."""
    path = tmp_path / "copy.yaml"
    path.write_text(COPY)
    command = arguments(path, cluster.url, servers)
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    killed = threading.Event()

    def kill_one() -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not read(servers, "traces") and time.monotonic() < deadline:
            time.sleep(0.2)
        victim = cluster.workers[0]
        for child in _children(victim.pid):
            os.kill(child, signal.SIGKILL)
        victim.kill()
        killed.set()

    killer = threading.Thread(target=kill_one)
    killer.start()
    said, _ = running.communicate(timeout=DEADLINE_S)
    killer.join()
    assert running.returncode == 0 and killed.is_set(), said[-4_000:]
    found = sorted(int(one.value or b"") for one in read(servers, "traces"))
    assert found == list(range(RECORDS))


def _children(pid: int) -> list[int]:
    """The processes that it started, and theirs."""
    own = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in map(int, own) for each in (child, *_children(child))]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_executors_without_ottla_get_it_by_an_archive(servers: str, tmp_path: Path) -> None:
    """`spark-submit` to workers whose Python has nothing of Ottla, nor the driver of a database or
    the client of a registry, and that share no folder with the driver."""
    plain = Path("/usr/bin/python3")
    if not plain.exists() or _version(plain) != sys.version_info[:2]:
        pytest.skip(f"no {plain} of version {sys.version_info.major}.{sys.version_info.minor}")
    archive = tmp_path / "env.tar"
    environment_archive.pack(archive)
    settings = {**QUICK_SPARK, **environment_archive.settings(archive)}
    path = tmp_path / "priced.yaml"
    home = Path(sys.executable).parent
    program = Path(__file__).with_name("submitted_pipeline.py")
    other = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ""}
    with SchemaRegistry() as registry, standalone_cluster(tmp_path, other) as cluster:
        text = PRICED.format(prices=_prices(tmp_path), registry=registry.url)
        text += f"bootstrap: {servers}\ncheckpoint: {tmp_path / 'checkpoint'}\n"
        path.write_text(text)
        command = [str(home / "spark-submit"), "--master", cluster.url]
        for name, text in settings.items():
            command += ["--conf", f"{name}={text}"]
        done = subprocess.run(
            [*command, str(program), str(path)],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": "python3", "PATH": f"{home}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
        said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        assert said["python"] == str(plain)
        assert Path(said["ottla"]).is_relative_to(cluster.work)
        assert said["rows"] == str(RECORDS)
        assert len(registry.versions("traces-value")) == 1
    found = [one.value or b"" for one in read(servers, "traces")]
    assert len(found) == RECORDS
    assert all(value[0] == 0 for value in found), "the number of a schema is in front"


def _prices(folder: Path) -> Path:
    """A database with a price for each order."""
    path = folder / "prices.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE prices (item TEXT, price INTEGER)")
        rows = [(str(number), number) for number in range(RECORDS)]
        database.executemany("INSERT INTO prices VALUES (?, ?)", rows)
    return path


def _version(python: Path) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))
