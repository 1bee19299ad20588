"""The archive that executors get: what is in it, and that it is enough."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.executors import environment_archive


def test_the_archive_has_ottla_and_what_its_tasks_import_and_nothing_of_spark() -> None:
    names = environment_archive.needed()
    assert {"ottla", "kio", "pyarrow", "numpy", "pandas", "fastavro"} <= names
    assert not names & {"pyspark", "py4j", "pytest", "matplotlib"}
    files = {inside for _, inside in environment_archive.files(sorted(names))}
    assert {"ottla/spark/source.py", "pyspark_ottla/__init__.py", "pyarrow/__init__.py"} <= files
    assert not any("__pycache__" in inside or inside.startswith("..") for inside in files)


def test_a_python_without_ottla_can_use_it_from_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is small: what is large is left out here, and packed in the test on a cluster."""
    small = sorted(environment_archive.needed() - {"pyarrow", "llvmlite", "numba", "pandas"})
    monkeypatch.setattr(environment_archive, "needed", lambda: set(small))
    archive = tmp_path / "env.tar"
    assert environment_archive.pack(archive) == small
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    code = "import ottla.spark.options as found; print(found.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "unpacked")},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    expected = tmp_path / "unpacked" / "ottla" / "spark" / "options.py"
    assert done.stdout.strip() == str(expected), done.stderr


def test_settings_name_the_archive_and_where_executors_find_it(tmp_path: Path) -> None:
    archive = tmp_path / "env.tar"
    with pytest.raises(UserError, match="no such file; ottla pipeline pack"):
        environment_archive.settings(archive)
    archive.touch()
    assert environment_archive.settings(archive) == {
        "spark.archives": f"{archive}#ottla_env",
        "spark.executorEnv.PYTHONPATH": "./ottla_env",
    }


def test_an_archive_that_spark_could_not_unpack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a name that ends in \.tar"):
        environment_archive.pack(tmp_path / "env.rar")
