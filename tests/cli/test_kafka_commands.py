from __future__ import annotations

import subprocess
from pathlib import Path

from ottla.cli.kafka.main import TOOLS
from ottla.testing import Broker
from tests.cli.ottla_program import Run


def test_every_command_is_put_there_and_can_be_run(
    run: Run, tmp_path: Path, cli_broker: Broker, topic: str
) -> None:
    folder = tmp_path / "a folder" / "bin"
    ran = run("kafka-commands", folder)
    assert str(folder) in ran.out
    assert {one.name for one in folder.iterdir()} == set(TOOLS)
    words = ["--list", "--bootstrap-server", cli_broker.bootstrap_servers]
    done = subprocess.run(
        [folder / "kafka-topics.sh", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert topic in done.stdout.split()


def test_a_folder_that_cannot_be_made_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run("kafka-commands", tmp_path / "file").failed(2, "file")
    run("kafka-commands").failed(2, "DIR")
