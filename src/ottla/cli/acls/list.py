"""`ottla acls list`: the access rules there are."""

from __future__ import annotations

from ottla.cli.acls.options import (
    AclOptions,
    Allow,
    Deny,
    Groups,
    Hosts,
    OnCluster,
    Operations,
    Prefixed,
    Topics,
    TransactionalIds,
    table,
)
from ottla.cli.connection import admin_connection
from ottla.cli.console import show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin import AclPattern


def list_(  # noqa: PLR0913 - a command's options are its parameters
    *,
    allow: Allow = None,
    deny: Deny = None,
    operation: Operations = None,
    host: Hosts = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    cluster: OnCluster = False,
    prefixed: Prefixed = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List access rules: all, or those that match the options.

    A topic's, a group's or an id's are all that speak of it, by its name, by a beginning of it, or
    as one of all; with --prefixed only those for this very beginning.

    Examples:
      ottla acls list
      ottla acls list --topic orders --json
      ottla acls list --allow User:alice --deny User:alice
    """
    asked = AclOptions(
        allow, deny, operation, host, topic, group, transactional_id, cluster, prefixed
    )
    filters = asked.filters(AclPattern.MATCH)
    with admin_connection(bootstrap) as admin:
        found = {rule for each in filters for rule in admin.describe_acls(each)}
    show(table("access rules", sorted(found)), as_json=as_json)
    return 0
