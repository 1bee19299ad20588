"""The commands that documents show are run: those in blocks marked `console run`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console run\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def commands() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for block in BLOCK.findall(document.read_text()):
            for command in block.splitlines():
                yield document.relative_to(ROOT).as_posix(), command


@pytest.mark.parametrize(("document", "command"), list(commands()))
def test_a_command_shown_in_a_document_works(document: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "ottla").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ottla.cli.main "$@"\n')
    (tmp_path / "ottla").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        command,
        shell=True,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"{document}: {command}\n{done.stderr}"


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
