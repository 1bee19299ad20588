"""`ottla users list`: who has SCRAM credentials."""

from __future__ import annotations

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap


def list_(*, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """List users with SCRAM credentials; passwords are not stored anywhere.

    Examples:
      ottla users list
      ottla users list --json
    """
    with admin_connection(bootstrap) as admin:
        users = admin.describe_user_scram_credentials().all()
    rows = [
        (user, mechanism, iterations)
        for user, credentials in sorted(users.items())
        for mechanism, iterations in sorted(credentials.items())
    ]
    show(Table("users", ("user", "mechanism", "iterations"), rows), as_json=as_json)
    return 0
