"""The table of commands, and the typer application made from it.

Owns: which words call which function. Never: does a command's work.

A command is a plain function with typer's annotations that returns its exit code. Only the one
that is asked for is imported; `--help` imports them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

import ottla
from ottla.cli.completion import broker_settings, completed_words, profile_names
from ottla.cli.serve import LOG_FORMATS, LOG_LEVELS
from ottla.model.errors import UserError


class Command(NamedTuple):
    """Where a command is, and the words it is asked for by."""

    words: tuple[str, ...]
    target: str  # module:function


COMMANDS: Final = (
    Command(("acls", "add"), "ottla.cli.acls.commands:add"),
    Command(("acls", "list"), "ottla.cli.acls.commands:list_"),
    Command(("acls", "remove"), "ottla.cli.acls.commands:remove"),
    Command(("adopt",), "ottla.cli.adopt:adopt"),
    Command(("brokers", "decommission"), "ottla.cli.brokers.move:decommission"),
    Command(("brokers", "describe"), "ottla.cli.brokers.show:describe"),
    Command(("brokers", "drain"), "ottla.cli.brokers.move:drain"),
    Command(("brokers", "list"), "ottla.cli.brokers.show:list_"),
    Command(("certs", "make"), "ottla.cli.certs.make:make"),
    Command(("cluster", "describe"), "ottla.cli.cluster.show:describe"),
    Command(("cluster", "health"), "ottla.cli.cluster.show:health"),
    Command(("cluster", "start"), "ottla.cli.cluster.local_commands:start"),
    Command(("cluster", "status"), "ottla.cli.cluster.local_commands:status"),
    Command(("cluster", "stop"), "ottla.cli.cluster.local_commands:stop"),
    Command(("configs", "delete"), "ottla.cli.configs.commands:delete"),
    Command(("configs", "describe"), "ottla.cli.configs.commands:describe"),
    Command(("configs", "set"), "ottla.cli.configs.commands:set_"),
    Command(("consume",), "ottla.cli.consume:consume"),
    Command(("delete-records",), "ottla.cli.delete_records:delete_records"),
    Command(("doctor",), "ottla.cli.doctor:doctor"),
    Command(("gateway",), "ottla.cli.gateway:gateway"),
    Command(("groups", "delete"), "ottla.cli.groups.commands:delete"),
    Command(("groups", "describe"), "ottla.cli.groups.describe:describe"),
    Command(("groups", "list"), "ottla.cli.groups.commands:list_"),
    Command(("groups", "members"), "ottla.cli.groups.commands:members"),
    Command(("groups", "reset-offsets"), "ottla.cli.groups.reset_offsets:reset_offsets"),
    Command(("kafka-commands",), "ottla.cli.kafka_commands:kafka_commands"),
    Command(("log", "dump"), "ottla.cli.log.dump:dump"),
    Command(("metadata", "export"), "ottla.cli.metadata.backup:export"),
    Command(("metadata", "import"), "ottla.cli.metadata.backup:import_"),
    Command(("metadata", "move"), "ottla.cli.metadata.move:move"),
    Command(("offsets", "list"), "ottla.cli.offsets.list:list_"),
    Command(("perf", "consume"), "ottla.cli.perf.consume:consume"),
    Command(("perf", "latency"), "ottla.cli.perf.latency:latency"),
    Command(("perf", "produce"), "ottla.cli.perf.produce:produce"),
    Command(("pipeline", "backfill"), "ottla.cli.pipeline.backfill:backfill"),
    Command(("pipeline", "list-templates"), "ottla.cli.pipeline.commands:list_templates"),
    Command(("pipeline", "logs"), "ottla.cli.pipeline.background_runs:logs"),
    Command(("pipeline", "new"), "ottla.cli.pipeline.commands:new"),
    Command(("pipeline", "pack"), "ottla.cli.pipeline.commands:pack"),
    Command(("pipeline", "plan"), "ottla.cli.pipeline.plan:plan"),
    Command(("pipeline", "replay-dlq"), "ottla.cli.pipeline.replay_dlq:replay_dlq"),
    Command(("pipeline", "report"), "ottla.cli.pipeline.commands:report"),
    Command(("pipeline", "run"), "ottla.cli.pipeline.run:run"),
    Command(("pipeline", "schema"), "ottla.cli.pipeline.commands:schema"),
    Command(("pipeline", "status"), "ottla.cli.pipeline.background_runs:status"),
    Command(("pipeline", "stop"), "ottla.cli.pipeline.background_runs:stop"),
    Command(("pipeline", "test"), "ottla.cli.pipeline.commands:test"),
    Command(("pipeline", "try"), "ottla.cli.pipeline.try_:try_"),
    Command(("pipeline", "validate"), "ottla.cli.pipeline.validate:validate"),
    Command(("produce",), "ottla.cli.produce:produce"),
    Command(("profile", "add"), "ottla.cli.profile.commands:add"),
    Command(("profile", "list"), "ottla.cli.profile.commands:list_"),
    Command(("profile", "remove"), "ottla.cli.profile.commands:remove"),
    Command(("profile", "show"), "ottla.cli.profile.commands:show"),
    Command(("profile", "use"), "ottla.cli.profile.commands:use"),
    Command(("quotas", "list"), "ottla.cli.quotas.commands:list_"),
    Command(("quotas", "remove"), "ottla.cli.quotas.commands:remove"),
    Command(("quotas", "set"), "ottla.cli.quotas.commands:set_"),
    Command(("reassign", "cancel"), "ottla.cli.reassign.commands:cancel"),
    Command(("reassign", "execute"), "ottla.cli.reassign.commands:execute"),
    Command(("reassign", "plan"), "ottla.cli.reassign.plan:plan"),
    Command(("reassign", "verify"), "ottla.cli.reassign.commands:verify"),
    Command(("tokens", "create"), "ottla.cli.tokens.commands:create"),
    Command(("tokens", "expire"), "ottla.cli.tokens.commands:expire"),
    Command(("tokens", "list"), "ottla.cli.tokens.commands:list_"),
    Command(("tokens", "renew"), "ottla.cli.tokens.commands:renew"),
    Command(("top",), "ottla.cli.top:top"),
    Command(("topics", "alter"), "ottla.cli.topics.alter:alter"),
    Command(("topics", "create"), "ottla.cli.topics.create:create"),
    Command(("topics", "delete"), "ottla.cli.topics.delete:delete"),
    Command(("topics", "describe"), "ottla.cli.topics.show:describe"),
    Command(("topics", "list"), "ottla.cli.topics.show:list_"),
    Command(("transactions", "abort"), "ottla.cli.transactions.abort:abort"),
    Command(("transactions", "describe"), "ottla.cli.transactions.show:describe"),
    Command(("transactions", "find-hanging"), "ottla.cli.transactions.find_hanging:find_hanging"),
    Command(("transactions", "list"), "ottla.cli.transactions.show:list_"),
    Command(("users", "add"), "ottla.cli.users.commands:add"),
    Command(("users", "list"), "ottla.cli.users.commands:list_"),
    Command(("users", "remove"), "ottla.cli.users.commands:remove"),
    Command(("zookeeper", "start"), "ottla.cli.zookeeper.start:start"),
)
GROUP_HELP: Final = {
    "acls": "Show and change access rules; the cluster needs an authorizer.",
    "brokers": "Show brokers, and move leaders or replicas away from one.",
    "certs": "Make certificates for development.",
    "cluster": "Show a cluster and its health; start one for development.",
    "configs": "Show and change the settings of topics, brokers, groups and loggers.",
    "groups": "Show consumer groups, reset their offsets, delete them.",
    "log": "Print the files of a data directory.",
    "metadata": "Move the metadata of a broker to ZooKeeper or back; export it.",
    "offsets": "Show first and end offsets of partitions, and offsets by time.",
    "perf": "Measure the throughput and latency of a cluster.",
    "pipeline": "Run jobs on Spark, each described by one file.",
    "profile": "Save clusters under names and choose the default.",
    "quotas": "Show and change how much users, client ids and IP addresses may use.",
    "reassign": "Move partitions to other brokers, by a plan.",
    "tokens": "Create, show, renew and expire delegation tokens.",
    "topics": "Create, show, change and delete topics.",
    "transactions": "Show transactions and abort those that hang.",
    "users": "Show users that log in by SCRAM, set their passwords, remove them.",
    "zookeeper": "Run ZooKeeper on this machine, for development.",
}
COMMAND_CONFIG: Final = "--command-config"
PROGRAM_OPTIONS: Final = ("-b", "--bootstrap-server", "--profile", "--command-config")
EXAMPLES: Final = "Examples:\n"
HELP: Final = """A distributed commit log that speaks Kafka's protocol.

\b
Examples:
  ottla serve --data-dir ./data
  ottla topics create orders --partitions 3
  ottla groups describe billing
"""


def _of(words: Sequence[str]) -> Callable[[str], list[str]]:
    """Completes one of these words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def application(arguments: Sequence[str]) -> typer.Typer:
    """The commands to choose from: the one the arguments name, or all of them."""
    app = typer.Typer(
        help=HELP, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    app.callback()(_options)
    app.command("serve", help="Run a broker; see ottla serve --help.")(_serve)
    groups: dict[str, typer.Typer] = {}
    for command in asked_for(arguments or completed_words(os.environ)):
        parent, *rest = command.words
        if rest and parent not in groups:
            groups[parent] = typer.Typer(help=GROUP_HELP[parent], no_args_is_help=True)
            groups[parent].callback()(lambda: None)
            app.add_typer(groups[parent], name=parent)
        function = _function(command)
        add = (groups[parent] if rest else app).command(
            command.words[-1], help=help_of(function), no_args_is_help=False
        )
        add(_exits(function))
    return app


def help_of(function: Callable[..., int]) -> str:
    """A command's docstring, with its examples a line each, as they were written."""
    text, mark, examples = (getdoc(function) or "").partition(EXAMPLES)
    return f"{text}\b\n{mark}{examples}" if mark else text


def asked_for(arguments: Sequence[str]) -> Sequence[Command]:
    if list(arguments) == ["--version"]:
        return ()
    words = after_program_options(arguments)
    for command in COMMANDS:
        if tuple(words[: len(command.words)]) == command.words:
            return (command,)
    return COMMANDS


def with_command_config_first(arguments: Sequence[str]) -> list[str]:
    """`--command-config FILE` may stand anywhere, as with Kafka's commands."""
    words = list(arguments)
    for index, word in enumerate(words[1:], 1):
        if word == "--":
            break
        if word == COMMAND_CONFIG and index + 1 < len(words):
            return [word, words[index + 1], *words[:index], *words[index + 2 :]]
        if word.startswith(f"{COMMAND_CONFIG}="):
            return [word, *words[:index], *words[index + 1 :]]
    return words


def after_program_options(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments from the command on, without the options that stand before it."""
    rest = list(arguments)
    while rest and rest[0].startswith(PROGRAM_OPTIONS):
        is_alone = rest[0] in PROGRAM_OPTIONS
        del rest[: 2 if is_alone else 1]  # `-b HOST` is two words, `-bHOST` and `--x=HOST` are one
    return rest


def _serve(  # noqa: PLR0913 - a command's options are its parameters
    file: Annotated[Path | None, typer.Argument(metavar="server.properties")] = None,
    *,
    set_: Annotated[list[str] | None, typer.Option("--set", autocompletion=broker_settings)] = None,
    listeners: str = "",
    data_dir: str = "",
    metrics_port: str = "",
    log_level: Annotated[str, typer.Option(autocompletion=_of(LOG_LEVELS))] = "",
    log_format: Annotated[str, typer.Option(autocompletion=_of(LOG_FORMATS))] = "",
    secure: Annotated[str, typer.Option(metavar="DIR")] = "",
    print_sample_config: Annotated[bool, typer.Option("--print-sample-config")] = False,
) -> None:
    """Only listed here, for help and completion: `main` has called it before typer was imported."""
    raise UserError("serve: options must follow the command; see ottla serve --help")


def _version(requested: bool) -> None:
    if requested:
        print(f"ottla {ottla.__version__}")
        raise typer.Exit


def _options(
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT,...",
            help="Connect to these brokers.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use the cluster of this profile; see ottla profile.",
            autocompletion=profile_names,
        ),
    ] = None,
    command_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read client settings from this file, such as security.protocol."
        ),
    ] = None,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself; commands find them in the parameters of the root context."""


def _function(command: Command) -> Callable[..., int]:
    module, _, name = command.target.partition(":")
    function: Callable[..., int] = getattr(import_module(module), name)
    return function


def _exits(function: Callable[..., int]) -> Callable[..., None]:
    """A command returns its exit code; typer wants it raised."""

    @wraps(function)
    def command(*arguments: object, **options: object) -> None:
        raise typer.Exit(function(*arguments, **options))

    return command
