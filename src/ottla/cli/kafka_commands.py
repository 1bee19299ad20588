"""`ottla kafka-commands`: put Kafka's own commands into a folder, to be put on PATH.

They are small scripts that call this very Python: nothing has to be activated, and removing the
folder removes them.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.cli.kafka.main import TOOLS
from ottla.model.errors import UserError

SCRIPT: Final = """#!/bin/sh
exec {python} -m ottla.cli.kafka.main {tool} "$@"
"""


def kafka_commands(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Write them to this directory; created if needed.")
    ],
) -> int:
    """Install Kafka's command names, such as kafka-topics.sh, run by Ottla.

    Examples:
      ottla kafka-commands ./kafka-bin
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for tool in TOOLS:
            script = folder / tool
            script.write_text(SCRIPT.format(python=shlex.quote(sys.executable), tool=tool))
            script.chmod(0o755)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from None
    print(f"{len(TOOLS)} commands are in {folder}; to use them: PATH={folder.resolve()}:$PATH")
    return 0
