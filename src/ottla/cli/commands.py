"""The table of commands, and the typer application made from it.

Owns: which words call which function. Never: does a command's work.

A command is a plain function with typer's annotations that returns its exit code. Only the one
that is asked for is imported; `--help` imports them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer

import ottla


class Command(NamedTuple):
    """Where a command is, and the words it is asked for by."""

    words: tuple[str, ...]
    target: str  # module:function


COMMANDS: Final = (
    Command(("adopt",), "ottla.cli.adopt:adopt"),
    Command(("log", "dump"), "ottla.cli.log.dump:dump"),
)
NOUNS: Final = {"log": "Look into the files of a data directory."}
HELP: Final = """A distributed commit log that speaks Kafka's protocol.

Examples:

  ottla serve --data-dir ./data

  ottla log dump data/orders-0/00000000000000000000.log
"""


def application(arguments: Sequence[str]) -> typer.Typer:
    """The commands to choose from: the one the arguments name, or all of them."""
    app = typer.Typer(
        help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )
    app.callback()(_options)
    app.command("serve", help="Run a broker; see ottla serve --help.")(_serve)
    nouns: dict[str, typer.Typer] = {}
    for command in asked_for(arguments):
        parent, *rest = command.words
        if rest and parent not in nouns:
            nouns[parent] = typer.Typer(help=NOUNS[parent], no_args_is_help=True)
            nouns[parent].callback()(lambda: None)
            app.add_typer(nouns[parent], name=parent)
        (nouns[parent] if rest else app).command(command.words[-1])(_exits(_function(command)))
    return app


def asked_for(arguments: Sequence[str]) -> Sequence[Command]:
    if list(arguments) == ["--version"]:
        return ()
    for command in COMMANDS:
        if tuple(arguments[: len(command.words)]) == command.words:
            return (command,)
    return COMMANDS


def _serve() -> None:
    """Only listed here: `main` has called it before typer was imported."""


def _version(asked: bool) -> None:
    if asked:
        print(f"ottla {ottla.__version__}")
        raise typer.Exit


def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


def _function(command: Command) -> Callable[..., int]:
    module, _, name = command.target.partition(":")
    function: Callable[..., int] = getattr(import_module(module), name)
    return function


def _exits(function: Callable[..., int]) -> Callable[..., None]:
    """A command returns its exit code; typer wants it raised."""

    @wraps(function)
    def command(*arguments: Any, **options: Any) -> None:
        raise typer.Exit(function(*arguments, **options))

    return command
