"""`ottla topics list`: the names of topics."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ottla.cli.argument_parsing import matching
from ottla.cli.argument_parsing import pattern as read_pattern
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.watch_view import EVERY_S, Interval, Watch, forever, watched


def list_(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN", help="Match the whole name with this regular expression."
        ),
    ] = None,
    *,
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
    watch: Watch = False,
    interval: Interval = EVERY_S,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List topics, one per line.

    Examples:
      ottla topics list
      ottla topics list 'ord.*' --json
    """
    wanted = None if pattern is None else read_pattern("PATTERN", pattern)
    with admin_connection(bootstrap, quiet=watch) as admin:
        if watch:
            return watched(
                lambda: [_table(matching(admin.list_topics(internal=internal), wanted))],
                as_json=as_json,
                every_s=interval,
                wait=forever(),
            )
        names = matching(admin.list_topics(internal=internal), wanted)
    if as_json:
        print(json.dumps(names, indent=2))
    elif names:
        print("\n".join(names))
    return 0


def _table(names: list[str]) -> Table:
    return Table("topics", ("topic",), [(name,) for name in names])
