"""The thing whose settings are meant: KIND and NAME on the command line."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from ottla.client.admin import Resource
from ottla.model.errors import UserError


class Kind(Enum):
    """What has settings; `brokers` are the defaults of all of them, and have no name."""

    TOPIC = "topic"
    BROKER = "broker"
    BROKERS = "brokers"
    GROUP = "group"
    LOGGERS = "loggers"


KindArgument = Annotated[
    Kind, typer.Argument(metavar="KIND", help="topic, broker, brokers, group or loggers.")
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", "-n", help="The topic, broker or group; every one but for brokers."),
]


def resource(kind: Kind, name: str | None) -> Resource:
    """The resource that KIND and --name mean."""
    if kind is Kind.BROKERS:
        if name is not None:
            raise UserError("--name: brokers are all of them; for one say: broker --name ID")
        return Resource.broker(None)
    if not name:
        raise UserError(f"--name: say which {kind.value} is meant")
    if kind is Kind.TOPIC:
        return Resource.topic(name)
    if kind is Kind.GROUP:
        return Resource.group(name)
    if not name.isascii() or not name.isdigit():
        raise UserError(f"--name {name!r}: expected the id of a broker, a number")
    return Resource.broker(int(name)) if kind is Kind.BROKER else Resource.loggers(int(name))
