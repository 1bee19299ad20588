"""`ottla profile show`: what a profile holds, but for secrets."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ottla.cli.completion import profile_names
from ottla.cli.console import Table
from ottla.cli.console import show as show_tables
from ottla.cli.options import AsJson
from ottla.cli.profile.profiles import file_path, load, mask_secrets
from ottla.model.errors import UserError


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
