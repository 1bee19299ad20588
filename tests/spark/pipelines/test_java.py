"""Spark's Java: what is said where there is none, and which of its lines nobody needs to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.java import FOR_PYTHON, check_java, hush_python, is_noise
from tests.spark.without_java import without_java

NOISE = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/17 04:18:49 WARN Utils: Your hostname, vm, resolves to a loopback address: 127.0.0.1
26/11/17 04:18:49 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Setting default log level to "WARN".
Setting Spark log level to "ERROR".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
/x/pyspark/testing/utils.py:127: FutureWarning: PySpark does not yet fully support pandas >= 3.0.0.
  require_minimum_pandas_version()
26/11/17 04:18:54 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...
"""


@pytest.mark.parametrize("line", NOISE.splitlines())
def test_what_spark_says_at_every_start_is_noise(line: str) -> None:
    assert is_noise(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        "26/11/17 04:18:54 ERROR MicroBatchExecution: Query clean terminated with error",
        "26/11/17 04:18:54 WARN TaskSetManager: Lost task 0.0 in stage 1.0",
        "Error: LinkageError occurred while loading main class org.apache.spark.deploy.SparkSubmit",
    ],
)
def test_what_went_wrong_is_not(line: str) -> None:
    assert not is_noise(line.encode())


def test_python_processes_are_told_beside_what_they_were_told_before() -> None:
    environment = {"PYTHONWARNINGS": "error::ResourceWarning"}
    for _ in range(2):
        hush_python(environment)
    assert environment["PYTHONWARNINGS"] == f"error::ResourceWarning,{FOR_PYTHON}"


def test_a_machine_without_java_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"java is not installed.*apt-get install"):
        check_java({}, lambda _: None)
    with pytest.raises(UserError, match=r"JAVA_HOME is /nowhere.*apt-get install"):
        check_java({"JAVA_HOME": "/nowhere"}, lambda _: "/usr/bin/java")
    check_java({}, lambda _: "/usr/bin/java")


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_pipeline_without_java_is_one_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "views.yaml").write_text(templates.text("views"))
    words = ("-m", "ottla", "pipeline", command, str(tmp_path / "views.yaml"))
    done = without_java(tmp_path, *words)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("ottla: java is not installed: pipelines run on Spark, which needs Java")
