"""Where Spark makes the folder of its own tables: never in the folder that a command is run in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ottla.spark.pipelines.session import OWN_TABLES, TABLES, own_tables


def test_it_is_beside_the_checkpoints() -> None:
    expected = {TABLES: f"file:{Path.cwd()}/checkpoints/views/{OWN_TABLES}"}
    assert own_tables("./checkpoints/views") == expected
    assert own_tables("/data/views") == {TABLES: f"file:/data/views/{OWN_TABLES}"}


def test_elsewhere_than_on_a_disk_spark_decides() -> None:
    assert own_tables("s3a://bucket/views") == {}


def test_without_checkpoints_it_is_gone_with_the_process() -> None:
    code = (
        "import os\n"
        "from ottla.spark.pipelines.session import TABLES, own_tables\n"
        "folder = own_tables(None)[TABLES].removeprefix('file:')\n"
        "print(os.path.isdir(folder), folder)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    was_there, folder = ran.stdout.split()
    assert was_there == "True"
    assert not Path(folder).exists()
