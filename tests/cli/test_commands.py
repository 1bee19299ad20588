from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import typer

from ottla.cli import serve
from ottla.cli.commands import COMMANDS, GROUP_HELP, Command, application, asked_for


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.words))
def test_every_command_of_the_table_exists_and_says_what_it_does(command: Command) -> None:
    module, _, name = command.target.partition(":")
    function = getattr(import_module(module), name)
    assert function.__doc__, f"{command.target} has no help"
    assert "int" in str(function.__annotations__["return"])


def test_only_the_command_that_is_asked_for_is_imported() -> None:
    [command] = asked_for(["log", "dump", "some.log"])
    assert command.words == ("log", "dump")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["log"], ["log", "--help"], ["nonsense"]])
def test_all_commands_are_offered_when_none_is_named(arguments: list[str]) -> None:
    assert asked_for(arguments) == COMMANDS


VERBS = """
    Abort Accept Add Adopt Allow Apply Cancel Change Check Choose Connect Count Create Delete Deny
    Diagnose Draw Expire Filter Find Give Include Install Limit List Listen Log Make Match Measure
    Move Name Override Parse Print Propose Raise Read Refresh Remove Renew Replace Replay Require
    Reset Restrict Run
    Save Select Send Serve Set Show Skip Split Start Stop Store Take Treat Use Wait Write
"""
LINE = 72


def helps() -> Iterator[tuple[str, str]]:
    """Every help text of the program, with the command or option it belongs to."""
    yield from GROUP_HELP.items()
    root = typer.main.get_command(application([]))
    yield from helps_of(root, "ottla")
    for action in serve._parser()._actions:
        yield f"serve {action.dest}", (action.help or "").capitalize()


def helps_of(command: Any, name: str) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        if name != "ottla serve" and parameter.name not in ("help", "show_completion"):
            yield f"{name} {parameter.name}", parameter.help or ""
    for word, inner in getattr(command, "commands", {}).items():
        yield f"{name} {word}", (inner.help or "").splitlines()[0]
        yield from helps_of(inner, f"{name} {word}")


def test_every_help_text_starts_with_a_verb_and_fits_on_a_line() -> None:
    texts, verbs = dict(helps()), set(VERBS.split())
    assert len(texts) > 200
    faults = {
        place: text
        for place, text in texts.items()
        if not text or text.split()[0].strip(",") not in verbs or len(text) > LINE or "\n" in text
    }
    assert faults == {}
