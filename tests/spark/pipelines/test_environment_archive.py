"""The archive that executors get: what is in it, and that it is enough."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.executors import environment_archive
from ottla.spark.pipelines.executors.task_packages import Needed

LARGE = {"pyarrow", "llvmlite", "numba", "pandas", "numpy"}
"""Left out here, and packed in the test on a cluster."""
IMPORTS = """
import ottla.spark.options as found
import adbc_driver_postgresql, adbc_driver_sqlite, adbc_driver_manager
import fastavro, google.protobuf.json_format, jsonschema.validators, referencing.jsonschema
from confluent_kafka.schema_registry import SchemaRegistryClient
SchemaRegistryClient({"url": "http://localhost:1"})
from cryptography.hazmat.primitives.serialization import pkcs12
import jwt
assert all("unpacked" in module.__file__ for module in (adbc_driver_sqlite, fastavro, jwt))
print(found.__file__)
"""


def test_the_archive_has_ottla_and_what_its_tasks_import_and_nothing_of_spark() -> None:
    names = environment_archive.needed_packages()
    assert {"ottla", "kio", "pyarrow", "numpy", "pandas", "fastavro"} <= names
    assert {"confluent-kafka", "jsonschema", "attrs"} <= names, "of a registry"
    assert {"adbc-driver-manager", "adbc-driver-postgresql", "adbc-driver-sqlite"} <= names
    assert {"cryptography", "pyjwt"} <= names, "of logins and stores"
    assert not names & {"pyspark", "py4j", "pytest", "matplotlib"}
    files = {inside for _, inside in environment_archive.files(sorted(names))}
    assert {"ottla/spark/source.py", "pyspark_ottla/__init__.py", "pyarrow/__init__.py"} <= files
    assert not any("__pycache__" in inside or inside.startswith("..") for inside in files)


def test_dependencies_are_those_of_extras_too_wherever_they_are_named() -> None:
    """A package may be known already when another one asks for an extra of it."""
    installed = {
        "ottla": ["kio>=1", 'ottla[avro]; extra == "registry"', 'fast_avro; extra == "avro"'],
        "kio": [],
        "fast-avro": ['Codec (>=2) ; python_version > "3"', "pyspark"],
        "codec": [],
        "pyspark": ["py4j"],
    }
    found = environment_archive.with_dependencies({"ottla": ("registry",)}, installed.get)
    assert found == {"ottla", "kio", "fast-avro", "codec"}


def test_a_python_without_ottla_can_use_it_and_what_its_extras_need_from_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = sorted(environment_archive.needed_packages() - LARGE)
    monkeypatch.setattr(environment_archive, "needed_packages", lambda more: set(small))
    archive = tmp_path / "env.tar"
    assert environment_archive.pack(archive) == small
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True)
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS],
        env={"PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    expected = unpacked / "ottla" / "spark" / "options.py"
    assert done.stdout.strip() == str(expected), done.stderr


def test_packages_that_python_steps_import_are_added_with_theirs() -> None:
    more = (
        environment_archive.needed_packages(["Hypothesis"]) - environment_archive.needed_packages()
    )
    assert {"hypothesis", "sortedcontainers"} <= more
    with pytest.raises(UserError, match="--with scikit-loren: not installed"):
        environment_archive.needed_packages(["scikit-loren"])


def test_an_archive_that_lacks_packages_of_a_pipeline_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "env.tar.gz"
    needs = [
        Needed("kio", "", "sources.a"),
        Needed("adbc-driver-postgresql", "database", "sources.prices"),
        Needed("fastavro", "avro", "sources.payments"),
    ]
    with pytest.raises(UserError, match="no such file; ottla pipeline pack"):
        environment_archive.check(archive, needs)
    monkeypatch.setattr(environment_archive, "needed_packages", lambda more: {"kio"})
    environment_archive.pack(archive)
    environment_archive.check(archive, needs[:1])
    with pytest.raises(UserError) as refused:
        environment_archive.check(archive, needs)
    assert str(refused.value) == (
        f"{archive} lacks packages that tasks import: sources.prices needs adbc-driver-postgresql; "
        "sources.payments needs fastavro. Install them with pip install 'ottla[avro,database]', "
        f"then pack again: ottla pipeline pack {archive}"
    )


def test_archives_of_other_tools_are_taken_as_they_are(tmp_path: Path) -> None:
    archive = tmp_path / "venv.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(__file__, "file.py")
    environment_archive.check(archive, [Needed("fastavro", "avro", "sources.a")])
    archive.write_text("no archive")
    with pytest.raises(UserError, match="not an archive that can be read"):
        environment_archive.check(archive, [])


def test_settings_name_the_archive_and_where_executors_find_it(tmp_path: Path) -> None:
    archive = tmp_path / "env.tar"
    assert environment_archive.settings(archive) == {
        "spark.archives": f"{archive}#ottla_env",
        "spark.executorEnv.PYTHONPATH": "./ottla_env",
    }


def test_an_archive_that_spark_could_not_unpack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a name that ends in \.tar"):
        environment_archive.pack(tmp_path / "env.rar")
