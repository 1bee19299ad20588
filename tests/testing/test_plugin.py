"""The fixture, as somebody finds it who has installed Ottla and configured nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USES_THE_FIXTURE = """
import socket

def test_it_is_there(ottla_broker):
    host, port = ottla_broker.bootstrap_servers.split(":")
    socket.create_connection((host, int(port))).close()

def test_it_is_the_same_for_all(ottla_broker, request):
    assert ottla_broker.data_dir.is_dir()
"""
GIVES_SETTINGS = """
import pytest

@pytest.fixture(scope="session")
def ottla_broker_settings():
    return {"num.partitions": "3"}

def test_settings_reach_the_broker(ottla_broker):
    assert ottla_broker._settings["num.partitions"] == "3"
"""
NEEDS_NO_BROKER = """
import sys

def test_who_wants_no_broker_does_not_load_one():
    assert "ottla.testing.plugin" in sys.modules
    assert not [name for name in sys.modules if name.startswith("ottla.broker")]
"""


@pytest.mark.parametrize("source", [USES_THE_FIXTURE, GIVES_SETTINGS, NEEDS_NO_BROKER])
def test_an_installed_ottla_offers_its_fixture_without_a_line_of_configuration(
    source: str, tmp_path: Path
) -> None:
    installed, project = tmp_path / "installed", tmp_path / "project"
    _install(installed)
    project.mkdir()
    (project / "test_it.py").write_text(source)
    path = os.pathsep.join([str(ROOT / "src"), str(installed)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _install(folder: Path) -> None:
    """What an installer leaves of pyproject.toml: the entry points."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = folder / "ottla-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ottla\nVersion: 0\n")
    lines = ["[pytest11]", *(f"{name} = {module}" for name, module in declared["pytest11"].items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
