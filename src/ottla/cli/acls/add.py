"""`ottla acls add`: new access rules."""

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
from ottla.cli.console import failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap


def add(  # noqa: PLR0913 - a command's options are its parameters
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
    """Add access rules; a denial takes precedence over every permission.

    Examples:
      ottla acls add --allow User:alice --operation read --topic orders --group billing
      ottla acls add --allow User:bob --operation write --topic pay- --prefixed
      ottla acls add --deny User:eve --operation all --cluster --host 10.0.0.7
    """
    rules = AclOptions(
        allow, deny, operation, host, topic, group, transactional_id, cluster, prefixed
    ).rules()
    with admin_connection(bootstrap) as admin:
        outcomes = admin.create_acls(rules)
    if outcomes.succeeded or as_json:
        show(table("added", outcomes.succeeded), as_json=as_json)
    return failures(outcomes.failed)
