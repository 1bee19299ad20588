"""`ottla topics list`: the names of topics."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ottla.cli.connect import connected
from ottla.cli.names import matching
from ottla.cli.names import pattern as read_pattern
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap


def list_(
    pattern: Annotated[
        str | None,
        typer.Argument(metavar="PATTERN", help="A regular expression for the whole name."),
    ] = None,
    *,
    internal: Annotated[
        bool, typer.Option("--internal", help="The brokers' own topics as well.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List topics by name, a line each.

    Examples:
      ottla topics list
      ottla topics list 'ord.*' --json
    """
    wanted = None if pattern is None else read_pattern("PATTERN", pattern)
    with connected(bootstrap) as admin:
        names = matching(admin.list_topics(internal=internal), wanted)
    if as_json:
        print(json.dumps(names, indent=2))
    elif names:
        print("\n".join(names))
    return 0
