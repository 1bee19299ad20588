"""`ottla serve`: gathers the settings of one broker and runs it until it is told to stop.

Owns: the options, and turning them into settings under Kafka's names. Never: holds a default of
its own; those stand with the settings.

The options are read with argparse, because a broker carries what its process has loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from ottla.model.errors import UserError

EXAMPLES: Final = """\
Settings carry Kafka's names. They come from the file, then from the environment (OTTLA_LOG_DIRS
is log.dirs), then from the options, each over the one before. One line on stdout says when the
broker is ready; SIGTERM or SIGINT stops it.

examples:
  ottla serve
  ottla serve --listeners PLAINTEXT://127.0.0.1:0 --data-dir /tmp/ottla
  ottla serve server.properties --set log.retention.hours=24 --metrics-port 9404
"""
KEY_OF: Final = {
    "listeners": "listeners",
    "data_dir": "log.dirs",
    "metrics_port": "metrics.port",
}


def serve(arguments: Sequence[str]) -> int:
    """Run a broker until SIGTERM or SIGINT."""
    file, sets = asked(arguments)
    # Imported as they are needed: --help and a mistake are answered at once.
    from ottla.config.properties import load

    loaded = load(file, environment=os.environ, sets=sets)
    for warning in loaded.warnings:
        print(f"ottla: {warning}", file=sys.stderr)
    from ottla.broker.lifecycle import run

    return run(loaded.texts)


def asked(arguments: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The file of settings, and what the options set, as key=value; the last of a key wins."""
    options = _parser().parse_args(arguments)
    short = [
        f"{key}={value}"
        for option, key in KEY_OF.items()
        if (value := getattr(options, option)) is not None
    ]
    return options.file, [*options.set, *short]


class _Parser(argparse.ArgumentParser):
    """Says a mistake as every other command does."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"serve: {message}; see ottla serve --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ottla serve",
        description="Run a broker.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="server.properties", help="a file of settings"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one setting, as often as needed",
    )
    parser.add_argument(
        "--listeners",
        metavar="LIST",
        help="where to listen: PLAINTEXT://host:port; port 0 picks a free one",
    )
    parser.add_argument(
        "--data-dir", metavar="LIST", help="where data is kept, commas between several"
    )
    parser.add_argument(
        "--metrics-port", metavar="N", help="serve Prometheus metrics over HTTP here"
    )
    return parser
