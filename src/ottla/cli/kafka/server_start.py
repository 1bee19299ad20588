"""kafka-server-start.sh [-daemon] server.properties [--override key=value]: runs a broker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla.cli.kafka.arguments import Arguments
from ottla.cli.kafka.daemon import start
from ottla.cli.serve import serve

LOG: Final = "kafkaServer.out"
"""Where a broker in the background writes, as Kafka's script has it, under $LOG_DIR or ./logs."""


def run(arguments: Sequence[str], log_dir: Path) -> int:
    options = _parser().parse_args(arguments)
    asked = [str(options.file.resolve())]
    for override in options.override or ():
        asked += ["--set", override]
    if not options.daemon:
        return serve(asked)
    start([sys.executable, "-m", "ottla", "serve", *asked], log_dir / LOG)
    return 0


def _parser() -> Arguments:
    parser = Arguments("kafka-server-start.sh", "Run a broker.")
    parser.add_argument("-daemon", action="store_true", help="run in the background")
    parser.add_argument("file", type=Path, metavar="server.properties")
    parser.add_argument("--override", action="append", metavar="KEY=VALUE")
    return parser
