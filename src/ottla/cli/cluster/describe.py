"""`ottla cluster describe`: brokers, controller, features."""

from __future__ import annotations

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap

BROKERS = ("broker", "address", "rack", "controller", "directories", "bytes", "usable bytes")


def describe(*, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """Show the brokers, their disks and the finalized features.

    Examples:
      ottla cluster describe
      ottla cluster describe --json
    """
    with admin_connection(bootstrap) as admin:
        cluster = admin.describe_cluster()
        features = admin.describe_features()
        disks = admin.describe_log_dirs().succeeded
    brokers = [
        (
            one.id,
            one.address,
            one.rack,
            one.id == cluster.controller,
            [each.path for each in disks.get(one.id, ())],
            sum(each.size_bytes for dir in disks.get(one.id, ()) for each in dir.replicas.values()),
            sum(max(each.usable_bytes, 0) for each in disks.get(one.id, ())),
        )
        for one in cluster.brokers
    ]
    levels = [
        (name, feature.finalized, *feature.supported) for name, feature in sorted(features.items())
    ]
    show(
        Table("cluster", ("id", "controller"), [(cluster.id, cluster.controller)]),
        Table("brokers", BROKERS, brokers, ("rack", "usable bytes", "controller")),
        Table("features", ("feature", "level", "from", "to"), levels),
        as_json=as_json,
    )
    return 0
