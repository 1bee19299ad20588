"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import typer

from ottla.model.errors import UserError

DEFAULT_SERVER: Final = "localhost:9092"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        envvar="OTTLA_BOOTSTRAP_SERVER",
        help="Brokers to begin with.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="KEY=VALUE", help="A setting; may be given again."),
]
Properties = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A client's setting, under Kafka's name."),
]


def pairs(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """`key=value` options as a dict; the last of a key wins."""
    found: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {text!r}: expected key=value")
        found[key.strip()] = value.strip()
    return found
