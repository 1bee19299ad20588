"""`ottla profile list`: the clusters that have names."""

from __future__ import annotations

import os

from ottla.cli.console import Table, show
from ottla.cli.options import AsJson
from ottla.cli.profile.profiles import SERVERS, file_path, load


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
    show(Table("profiles", ("profile", "used", "bootstrap servers"), rows), as_json=as_json)
    return 0
