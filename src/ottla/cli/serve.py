"""`ottla serve`: gathers the settings of one broker and runs it until it is told to stop.

Owns: the options, and turning them into settings under Kafka's names. Never: holds a default of
its own; those stand with the settings.

The options are read with argparse, because a broker carries what its process has loaded.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from ottla.model.errors import UserError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXAMPLES: Final = """\
Settings carry Kafka's names. They come from the file, then from the environment (OTTLA_LOG_DIRS
is log.dirs), then from the options, each over the one before. One line on stdout says when the
broker is ready; SIGTERM or SIGINT stops it.

examples:
  ottla serve
  ottla serve --listeners PLAINTEXT://127.0.0.1:0 --data-dir /tmp/ottla
  ottla serve server.properties --set log.retention.hours=24 --metrics-port 9404
  ottla serve --secure ./security --data-dir ./data
  ottla serve --log-level warning --log-format json
  ottla serve --print-sample-config > server.properties
"""
LOG_LEVELS: Final = ("debug", "info", "warning", "error", "critical")
LOG_FORMATS: Final = ("text", "json")
KEY_OF: Final = {
    "listeners": "listeners",
    "data_dir": "log.dirs",
    "metrics_port": "metrics.port",
}


def serve(arguments: Sequence[str]) -> int:
    """Run a broker until SIGTERM or SIGINT."""
    options = _parser().parse_args(arguments)
    if options.print_sample_config:
        print(sample_config(), end="")
        return 0
    file, sets = parse_options(arguments)
    if options.secure is not None:
        from ottla.cli.secure_start import prepare

        sets = [*prepare(options.secure, file, sets), *sets]
    # Imported as they are needed: --help and a mistake are answered at once.
    from ottla.config.properties import load

    loaded = load(file, environment=os.environ, sets=sets)
    from ottla.broker.lifecycle import LogStyle, run

    logs = LogStyle(options.log_level, options.log_format)
    logs.apply()
    for warning in loaded.warnings:
        if options.log_format == "json":  # whoever collects these lines reads no others
            logging.getLogger("ottla").warning("%s", warning)
        else:
            print(f"ottla: {warning}", file=sys.stderr)
    return run(loaded.texts, logs)


def sample_config() -> str:
    """A server.properties to begin with: the settings that most brokers need, at their defaults."""
    from importlib.resources import files

    return files("ottla.config").joinpath("server.properties").read_text(encoding="utf-8")


def parse_options(arguments: Sequence[str]) -> tuple[Path | None, list[str]]:
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

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        print(self.format_help(), end="", file=file)  # argparse's own drops what a write raises


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ottla serve",
        description="Run a broker.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="server.properties",
        help="read settings from this file",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a broker setting; repeatable",
    )
    parser.add_argument(
        "--listeners", metavar="LIST", help="listen here: PLAINTEXT://host:port; 0 is a free port"
    )
    parser.add_argument(
        "--data-dir", metavar="LIST", help="store data here; separate several by commas"
    )
    parser.add_argument(
        "--metrics-port", metavar="N", help="serve Prometheus metrics over HTTP here"
    )
    _add_logging_options(parser)
    parser.add_argument(
        "--secure",
        nargs="?",
        type=Path,
        const=Path("ottla-security"),
        metavar="DIR",
        help="use TLS and logins; certificates and the first password are made in DIR",
    )
    parser.add_argument(
        "--print-sample-config",
        action="store_true",
        help="print a sample server.properties and exit",
    )
    return parser


def _add_logging_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default="info",
        help="log messages of this level and above (info)",
    )
    parser.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        default="text",
        help="log to stderr as text or as JSON lines (text)",
    )
