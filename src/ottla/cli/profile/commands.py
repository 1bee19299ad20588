"""`ottla profile add`, `list`, `remove`, `show`, `use`: clusters by name."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ottla.cli.completion import profile_names
from ottla.cli.console import Table
from ottla.cli.console import show as show_tables
from ottla.cli.options import AsJson, Properties, pairs
from ottla.cli.profile.profiles import (
    SERVERS,
    check_properties,
    file_path,
    load,
    mask_secrets,
    save,
)
from ottla.config.client import ClientConfig
from ottla.model.errors import UserError


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
    profiles = load(path).with_profile(name, {SERVERS: servers, **given})
    save(path, profiles)
    used = "; it is used from now on" if profiles.current == name else ""
    print(f"added profile {name}{used}")
    return 0


def list_(*, as_json: AsJson = False) -> int:
    """List profiles and mark the one in use.

    Examples:
      ottla profile list
      ottla profile list --json
    """
    found = load(file_path(os.environ))
    rows = [
        (name, name == found.current, properties.get(SERVERS))
        for name, properties in sorted(found.profiles.items())
    ]
    show_tables(Table("profiles", ("profile", "used", "bootstrap servers"), rows), as_json=as_json)
    return 0


def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name the profile.", autocompletion=profile_names)
    ],
) -> int:
    """Remove a profile; if it was in use, none is afterwards.

    Examples:
      ottla profile remove staging
    """
    path = file_path(os.environ)
    save(path, load(path).without(name))
    print(f"removed profile {name}")
    return 0


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name the profile; default: the one in use.",
            autocompletion=profile_names,
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> int:
    """Show a profile; secrets are hidden.

    Examples:
      ottla profile show
      ottla profile show staging --json
    """
    profiles = load(file_path(os.environ))
    profile = name or profiles.current
    if profile is None:
        raise UserError("profile show: no profile is in use; see: ottla profile list")
    rows = list(mask_secrets(profiles.of(profile)).items())
    show_tables(Table(f"profile {profile}", ("property", "value"), rows), as_json=as_json)
    return 0


def use(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name the profile.", autocompletion=profile_names)
    ],
) -> int:
    """Use a profile by default.

    Examples:
      ottla profile use staging
    """
    path = file_path(os.environ)
    profiles = load(path).using(name)
    save(path, profiles)
    print(f"using profile {name}: {profiles.of(name).get(SERVERS, '')}")
    return 0
