"""zookeeper-server-start.sh [-daemon] zookeeper.properties: a ZooKeeper, for development and tests.

The server itself is in the jars that PySpark brings; a cluster of consequence has an ensemble of
its own, with the same settings (`docs/cli.md`).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla.cli.kafka.arguments import Arguments
from ottla.cli.kafka.daemon import start
from ottla.model.errors import UserError

MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
LOG: Final = "zookeeper.out"
OPTIONS: Final = ("-Xmx512M", "-Dzookeeper.admin.enableServer=false")


def run(arguments: Sequence[str], log_dir: Path) -> int:
    options = _parser().parse_args(arguments)
    if not options.file.is_file():
        raise UserError(f"{options.file}: there is no such file")
    words = command(options.file)
    if not options.daemon:
        os.execv(words[0], words)
    start(words, log_dir / LOG)
    return 0


def command(file: Path) -> list[str]:
    """What runs the server."""
    java = shutil.which("java")
    if java is None:
        raise UserError("ZooKeeper needs Java: install a JRE, such as default-jre-headless")
    return [java, *OPTIONS, "-cp", f"{jars()}/*", MAIN, str(file)]


def jars() -> Path:
    """The folder of jars that has ZooKeeper's server in it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise UserError("ZooKeeper's server comes with PySpark: pip install 'ottla[spark]'")
    return Path(found.origin).parent / "jars"


def _parser() -> Arguments:
    parser = Arguments("zookeeper-server-start.sh", "Run a ZooKeeper server.")
    parser.add_argument("-daemon", action="store_true", help="run in the background")
    parser.add_argument("file", type=Path, metavar="zookeeper.properties")
    return parser
