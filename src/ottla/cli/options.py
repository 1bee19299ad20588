"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import typer

from ottla.cli.completion import client_settings, group_names, topic_names, topic_settings
from ottla.cli.profile.cluster import SERVERS_VARIABLE, Cluster, resolve_cluster
from ottla.model.errors import UserError


def _cluster(context: typer.Context, value: str | None) -> Cluster:
    """The cluster that is meant: by this option, or by those that stand before the command."""
    program = context.find_root().params
    file = program.get("command_config")
    return resolve_cluster(value or None, program.get("bootstrap"), program.get("profile"), file)


DEFAULT_SERVER: Final = ""  # the callback decides what that is

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        callback=_cluster,
        show_default=False,
        help=f"Connect to these brokers; default: ${SERVERS_VARIABLE} or profile.",
    ),
]
TopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Name the topic.", autocompletion=topic_names)
]
GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="Name the group.", autocompletion=group_names)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Configs = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="KEY=VALUE",
        help="Set a topic setting; repeatable.",
        autocompletion=topic_settings,
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a client setting by Kafka's name; repeatable.",
        autocompletion=client_settings,
    ),
]


def pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """`key=value` options as a dict; the last of a key wins."""
    values: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {text!r}: expected key=value")
        values[key.strip()] = value.strip()
    return values
