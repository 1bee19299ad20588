"""`ottla profile use`: the profile of commands that name none."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ottla.cli.completion import profile_names
from ottla.cli.profile.profiles import SERVERS, file_path, load, save


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
