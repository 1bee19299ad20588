"""Several commands of `ottla` in one process of their own: Spark starts once for all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.ottla_program import Ran

DEADLINE_S = 600
PROGRAM = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from ottla.cli import main

ran = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main.run(words)
    ran.append((code, out.getvalue(), err.getvalue()))
open(sys.argv[2], "w").write(json.dumps(ran))
"""


def run_all(folder: Path, *commands: list[str]) -> list[Ran]:
    """Run them one after another in this folder."""
    told = folder / "ran.json"
    command = [sys.executable, "-c", PROGRAM, json.dumps(commands), str(told)]
    subprocess.run(command, cwd=folder, check=True, timeout=DEADLINE_S, capture_output=True)
    return [Ran(*one) for one in json.loads(told.read_text())]
