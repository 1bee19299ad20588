"""A command on a machine that has a shell and this Python, and no Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.tidy import ROOT

TOOLS: Final = ("/bin/bash", "/bin/sh", "/usr/bin/env", "/usr/bin/dirname")


def without_java(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    tools = folder / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / Path(tool).name).symlink_to(tool)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, *words],
        env={**kept, "PATH": str(tools), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
