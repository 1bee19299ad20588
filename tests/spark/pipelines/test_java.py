"""Spark's Java: what is said where there is none, and where its output goes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.java import (
    FOR_PYTHON,
    LOG,
    MAX_LOG_BYTES,
    OF_PANDAS,
    OutputLog,
    check_java,
    compiled_workers,
    hush_python,
)
from tests.spark.without_java import without_java

SPARK = b"26/11/17 04:18:49 WARN Utils: Your hostname, vm, resolves to a loopback address\n"
OURS = b"ottla: data loss: orders-0: offset 3 is below the log start offset 5\n"


def test_what_spark_says_goes_to_a_file_and_what_we_say_to_people(tmp_path: Path) -> None:
    shown: list[bytes] = []
    log = OutputLog(tmp_path / LOG, shown.append)
    for line in (SPARK, OURS, SPARK):
        log.write(line)
    log.close()
    assert shown == [OURS]
    assert (tmp_path / LOG).read_bytes() == SPARK * 2


def test_the_file_is_bounded(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / LOG, lambda _: None)
    line = b"x" * 1_000_000 + b"\n"
    for _ in range(40):
        log.write(line)
    log.close()
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= MAX_LOG_BYTES + len(line)


def test_python_processes_are_told_beside_what_they_were_told_before() -> None:
    environment = {"PYTHONWARNINGS": "error::ResourceWarning"}
    for _ in range(2):
        hush_python(environment)
    assert environment["PYTHONWARNINGS"] == f"error::ResourceWarning,{FOR_PYTHON}"


def test_declaring_a_function_of_pandas_in_a_step_prints_nothing() -> None:
    code = (
        "from pyspark.sql.functions import pandas_udf\n"
        "from pyspark.sql.types import IntegerType\n"
        "from ottla.spark.pipelines.java import hush_pandas\n"
        "{}\n"
        "import pandas as pd\n"
        "def size(text: pd.Series) -> pd.Series: return text.str.len()\n"
        "pandas_udf(size, IntegerType())\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code.format(call)], capture_output=True, text=True, check=True
        ).stderr
        for call in ("", "hush_pandas()")
    ]
    assert OF_PANDAS in said[0], "pandas is one that PySpark knows: the filter can go"
    assert said[1] == ""


def test_a_machine_without_java_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"java is not installed.*apt-get install"):
        check_java({}, lambda _: None)
    with pytest.raises(UserError, match=r"JAVA_HOME is /nowhere.*apt-get install"):
        check_java({"JAVA_HOME": "/nowhere"}, lambda _: "/usr/bin/java")
    check_java({}, lambda _: "/usr/bin/java")


@pytest.mark.parametrize("command", ["run", "run --background", "try", "validate"])
def test_a_pipeline_without_java_is_one_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "views.yaml").write_text(templates.text("views"))
    words = ("-m", "ottla", "pipeline", *command.split(), str(tmp_path / "views.yaml"))
    done = without_java(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("ottla: java is not installed: pipelines run on Spark, which needs Java")


def home_of(settings: dict[str, str], environment: dict[str, str]) -> Path | None:
    before = dict(environment)
    with compiled_workers({"spark.master": "local[2]", **settings}, environment):
        home = environment.get("SPARK_HOME")
    assert environment == before
    return None if home is None else Path(home)


def test_workers_on_this_machine_import_the_pyspark_that_is_installed_not_the_zip() -> None:
    home = home_of({}, {"PYSPARK_PYTHON": sys.executable})
    assert home is not None
    assert (home / "bin" / "spark-submit").is_file()
    assert any((home / "jars").glob("spark-core*.jar"))
    assert not (home / "python").exists()


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({"spark.master": "yarn"}, {"PYSPARK_PYTHON": sys.executable}),
        ({"spark.pyspark.python": "python3"}, {"PYSPARK_PYTHON": sys.executable}),
        ({}, {"PYSPARK_PYTHON": "python3"}),
        ({}, {}),
    ],
)
def test_another_machine_or_python_keeps_the_zip(
    settings: dict[str, str], environment: dict[str, str]
) -> None:
    assert home_of(settings, environment) is None


def test_a_home_that_was_chosen_stays() -> None:
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": "/opt/spark"}
    assert home_of({}, environment) == Path("/opt/spark")
