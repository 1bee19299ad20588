"""`ottla acls list`, `add` and `remove`: the access rules of a cluster."""

from __future__ import annotations

import sys

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
from ottla.cli.confirmation import Yes, confirm
from ottla.cli.connection import admin_connection
from ottla.cli.console import failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin import AclFilter, AclPattern
from ottla.model.errors import UserError


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


def remove(  # noqa: PLR0913 - a command's options are its parameters
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
    yes: Yes = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Remove the access rules that match the options.

    Without --yes it shows what would go, and asks.

    Examples:
      ottla acls remove --allow User:alice --operation read --topic orders --yes
      ottla acls remove --allow User:bob --deny User:bob --yes
      echo y | ottla acls remove --topic pay- --prefixed
    """
    options = AclOptions(
        allow, deny, operation, host, topic, group, transactional_id, cluster, prefixed
    )
    if options == AclOptions():
        raise UserError("acls remove: no filter given; use --topic, --allow or another option")
    filters = options.filters(AclPattern.LITERAL)
    with admin_connection(bootstrap) as admin:
        found = sorted({rule for each in filters for rule in admin.describe_acls(each)})
    if found and not yes:
        show(table("to be removed", found), as_json=False, file=sys.stderr)
        if not confirm("remove them?"):
            print("ottla: nothing was removed", file=sys.stderr)
            return 1
    with admin_connection(bootstrap) as admin:
        outcomes = admin.delete_acls(map(AclFilter.exactly, found))
    gone = [rule for rules in outcomes.succeeded.values() for rule in rules]
    show(table("removed", gone), as_json=as_json)
    return failures(outcomes.failed)
