"""`ottla quotas list`: the quotas there are."""

from __future__ import annotations

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.quotas.options import ClientId, Ip, User, name_of, name_text
from ottla.client.admin.quotas import QuotaFilter


def list_(
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List quotas: all, or those of a user, a client id or an IP address.

    Examples:
      ottla quotas list
      ottla quotas list --user alice --json
    """
    named = {"user": user, "client-id": client_id, "ip": ip}
    filter: QuotaFilter = {
        kind: name for kind, text in named.items() if (name := name_of(text)) is not None
    }
    with admin_connection(bootstrap) as admin:
        quotas = admin.describe_client_quotas(filter)
    rows = [
        (*map(name_text, entity), key, value)
        for entity, values in quotas.items()
        for key, value in sorted(values.items())
    ]
    rows.sort(key=str)
    show(Table("quotas", ("user", "client id", "ip", "quota", "value"), rows), as_json=as_json)
    return 0
