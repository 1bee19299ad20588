from __future__ import annotations

from importlib import import_module

import pytest

from ottla.cli.commands import COMMANDS, Command, asked_for


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
