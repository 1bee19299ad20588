"""The way from a command to a cluster.

Owns: that a broker which cannot be reached is said in one line, at once, with what to check; and
that a person who waits for longer than two seconds sees that something goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ottla.cli.console import patience
from ottla.cli.profile.cluster import client_config
from ottla.client.admin.sync import Admin
from ottla.config.client import AdminConfig

CALL_TIMEOUT_MS: Final = 30_000
CLOSED: Final = "closed the connection"
"""What the client says of a broker that took the connection, and then did not answer."""


@contextmanager
def admin_connection(bootstrap: str, *, quiet: bool = False) -> Iterator[Admin]:
    """An admin of a cluster that answers; `quiet` where the command draws on the screen itself."""
    config = {"default.api.timeout.ms": CALL_TIMEOUT_MS, **client_config(bootstrap, AdminConfig)}
    with Admin(config=config) as admin, patience(f"waiting for {bootstrap}", quiet=quiet):
        reach(admin, bootstrap)
        yield admin


def reach(admin: Admin, bootstrap: str) -> None:
    """Learn who is there, or say that nobody is."""
    try:
        admin.wait_for(lambda each: each.brokers())
    except OSError as error:
        raise unreachable(bootstrap, error) from None


def unreachable(bootstrap: str, error: OSError) -> ConnectionError:
    if CLOSED in str(error):
        advice = "if that listener asks for TLS or a login, give --command-config or a --profile"
    else:
        advice = (
            "check that one runs there (ottla serve) and that --bootstrap-server, "
            "OTTLA_BOOTSTRAP_SERVER or the profile names it"
        )
    return ConnectionError(f"cannot reach a broker at {bootstrap} ({error}): {advice}")
