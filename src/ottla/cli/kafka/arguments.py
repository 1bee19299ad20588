"""Options that Kafka's commands share, and how their mistakes are said.

Kafka's tools print a mistake with their usage on stderr and exit with 1.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ottla.cli.argument_parsing import shorten
from ottla.config.properties import read_client_file
from ottla.model.errors import UserError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def whole(bits: int) -> Callable[[str], int]:
    """The type of an option: a whole number that a field of the protocol can hold."""

    def read(text: str) -> int:
        if not re.fullmatch("[+-]?[0-9]+", text):
            raise argparse.ArgumentTypeError(f"expected a whole number, not {shorten(text)}")
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        if len(text.lstrip("+-0")) > len(str(high)) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"{shorten(text)} is out of range; allowed are {low} to {high}"
            )
        return int(text)

    return read


int16, int32, int64 = whole(16), whole(32), whole(64)


class ToolError(Exception):
    """What Kafka's tool says on stdout when it did not succeed; exit code 1."""


class UsageError(Exception):
    """What Kafka's tool says, alone on stderr, of options that do not fit; exit code 1."""


class Arguments(argparse.ArgumentParser):
    """argparse, with the manners of Kafka's tools."""

    def __init__(self, tool: str, about: str) -> None:
        super().__init__(prog=tool, description=about, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        print(message, file=sys.stderr)
        self.print_usage(sys.stderr)
        raise SystemExit(1)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        print(self.format_help(), end="", file=file)  # argparse's own drops what a write raises

    def flag(self, *names: str, help: str | None = None) -> None:
        self.add_argument(*names, action="store_true", help=help)

    def cluster(self, *, broker_list: bool = False) -> None:
        """Where the cluster is, in every spelling there has been."""
        self.add_argument("--bootstrap-server", metavar="HOST:PORT,...")
        self.add_argument(
            "--zookeeper", metavar="HOST:PORT/CHROOT", help="connect to these brokers"
        )
        self.add_argument("--command-config", type=Path, metavar="FILE")
        if broker_list:
            self.add_argument("--broker-list", metavar="HOST:PORT,...")

    def exactly_one(self, options: argparse.Namespace, names: Sequence[str], said: str) -> str:
        """Which of these actions was asked for."""
        given = [name for name in names if getattr(options, name)]
        if len(given) != 1:
            self.error(said)
        return given[0]

    def not_together(self, options: argparse.Namespace, pairs: Mapping[str, Sequence[str]]) -> None:
        """Refuse the options that a given one excludes, in Kafka's words."""
        for used, others in pairs.items():
            for other in others:
                if is_given(options, used) and is_given(options, other):
                    names = [f'"[{option.replace("_", "-")}]"' for option in (used, other)]
                    self.error(f"Option {names[0]} can't be used with option {names[1]}")


def is_given(options: argparse.Namespace, name: str) -> bool:
    """Whether an option stands on the command line, also with an empty value."""
    return getattr(options, name) not in (None, False)


def properties(path: Path | None) -> dict[str, str]:
    """The settings in a file that an option names."""
    return {} if path is None else read_client_file(path, os.environ)


def key_values(given: Sequence[str] | None, what: str) -> dict[str, str]:
    """`key=value`, as often as given, also with commas between."""
    values: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"{what} {text!r}: expected key=value")
        values[key.strip()] = value.strip()
    return values


def first_given(options: argparse.Namespace, *names: str) -> Any:
    """The first of several spellings of an option that was given."""
    return next((value for name in names if (value := getattr(options, name)) is not None), None)
