"""`ottla profile add`: a cluster under a name."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ottla.cli.options import Properties, pairs
from ottla.cli.profile.profiles import SERVERS, check_properties, file_path, load, save
from ottla.config.client import ClientConfig


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name the profile.")],
    *,
    servers: Annotated[
        str,
        typer.Option(
            "--bootstrap-server", "-b", metavar="HOST:PORT,...", help="Connect to these brokers."
        ),
    ],
    properties: Properties = None,
) -> int:
    """Add or replace a profile: servers and client properties.

    The first profile is used at once; ottla profile use changes that.

    Examples:
      ottla profile add local -b localhost:9092
      ottla profile add staging -b kafka1:9092,kafka2:9092 --set request.timeout.ms=5000
    """
    given = pairs("--set", properties)
    check_properties(given)
    ClientConfig.from_options({"bootstrap_servers": servers})
    path = file_path(os.environ)
    profiles = load(path).added(name, {SERVERS: servers, **given})
    save(path, profiles)
    used = "; it is used from now on" if profiles.current == name else ""
    print(f"added profile {name}{used}")
    return 0
