"""What documents show is run: each one's blocks in order, in one folder, against one broker.

`console run` blocks are commands that must succeed, `python run` blocks are programs, and a
`console serve` block is the broker: it is up before the next block, and stops well at the end.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.spark.quick_jvm import QUICK_JAVA

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(console|python) (run|serve)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PORTS = ("8082", "9092", "9404")
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


class Block(NamedTuple):
    language: str
    does: str
    text: str


def blocks(document: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(document.read_text())]


@pytest.mark.timeout(400)  # one of them starts Spark, again and again
@pytest.mark.parametrize(
    "document",
    [pytest.param(one, id=one.relative_to(ROOT).as_posix()) for one in DOCUMENTS if blocks(one)],
)
def test_what_a_document_shows_works(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = {shown: str(free_port()) for shown in PORTS}
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", f"localhost:{ports['9092']}")
    with ExitStack() as stack:
        for block in blocks(document):
            text = re.sub("|".join(PORTS), lambda shown: ports[shown[0]], block.text)
            if block.does == "serve":
                stack.enter_context(broker(text, tmp_path))
            elif block.language == "python":
                succeeds([sys.executable, "-c", text], tmp_path)
            else:
                for command in filter(can_be_run, text.splitlines()):
                    succeeds(["sh", "-c", command], tmp_path)


def test_the_guides_have_something_to_run() -> None:
    for name in ("quickstart.md", "operations.md", "pipelines.md", "security.md"):
        assert {"run", "serve"} == {block.does for block in blocks(ROOT / "docs" / name)}


def can_be_run(command: str) -> bool:
    """Not every machine has kcat and curl; `make setup` says so where they are missing."""
    words = re.findall(r"(?:^|\| )([\w-]+)", command)
    return all(word == "ottla" or shutil.which(word) for word in words)


def succeeds(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"


@contextmanager
def broker(command: str, folder: Path) -> Iterator[None]:
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"], env=environment(folder), cwd=folder, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert b" ready on " in process.stdout.readline()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def environment(folder: Path) -> dict[str, str]:
    """With `ottla` on the path, from this checkout."""
    tool = folder / "ottla"
    if not tool.exists():
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ottla.cli.main "$@"\n')
        tool.chmod(0o755)
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        **QUICK_JAVA,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": path,
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port


def test_make_targets_that_documents_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z ]+):", makefile, re.MULTILINE))
    known = {name for names in targets for name in names.split()}
    named = {
        target
        for document in DOCUMENTS
        for target in re.findall(r"`make ([a-z]+)", document.read_text())
    }
    assert named
    assert named <= known
