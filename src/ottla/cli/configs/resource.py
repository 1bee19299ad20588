"""The thing whose settings are meant: KIND and NAME on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Annotated

import typer

from ottla.cli.argument_parsing import INT32_MAX, whole_number
from ottla.cli.completion import resource_names
from ottla.client.admin import Resource
from ottla.config.broker import BrokerConfig
from ottla.config.group import GroupConfig
from ottla.config.topic import TopicConfig
from ottla.model.errors import UserError


class ConfigKind(Enum):
    """What has settings; `brokers` are the defaults of all of them, and have no name."""

    TOPIC = "topic"
    BROKER = "broker"
    BROKERS = "brokers"
    GROUP = "group"
    LOGGERS = "loggers"


KindArgument = Annotated[
    ConfigKind,
    typer.Argument(metavar="KIND", help="Choose topic, broker, brokers, group or loggers."),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        "-n",
        help="Name the topic, broker or group; not for brokers.",
        autocompletion=resource_names,
    ),
]


def resource(kind: ConfigKind, name: str | None) -> Resource:
    """The resource that KIND and --name mean."""
    if kind is ConfigKind.BROKERS:
        if name is not None:
            raise UserError(
                "--name: not allowed with brokers, which means all; for one use: broker --name ID"
            )
        return Resource.broker(None)
    if not name:
        raise UserError(f"--name is required for {kind.value}")
    if kind is ConfigKind.TOPIC:
        return Resource.topic(name)
    if kind is ConfigKind.GROUP:
        return Resource.group(name)
    broker = whole_number("--name", name, "the id of a broker, a number", most=INT32_MAX)
    return Resource.broker(broker) if kind is ConfigKind.BROKER else Resource.loggers(broker)


def known_settings(kind: ConfigKind) -> Iterable[str]:
    """The names that settings of this kind have here; those of loggers are free."""
    match kind:
        case ConfigKind.TOPIC:
            return TopicConfig.SETTINGS
        case ConfigKind.BROKER | ConfigKind.BROKERS:
            return BrokerConfig.SETTINGS
        case ConfigKind.GROUP:
            return GroupConfig.SETTINGS
        case ConfigKind.LOGGERS:
            return ()
