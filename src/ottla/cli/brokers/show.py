"""`ottla brokers list`, `describe`: brokers, their leaders, replicas and disks."""

from __future__ import annotations

from collections import Counter

from ottla.cli.brokers.move import BrokerArgument, require_broker
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.model.ids import TopicPartition

BROKER_COLUMNS = (
    "broker", "address", "rack", "controller", "leaders", "replicas", "out of sync", "bytes",
)  # fmt: skip
PARTITION_COLUMNS = ("topic", "partition", "role", "in sync", "replicas", "bytes", "directory")


def list_(*, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """Show the brokers with the number of their leaders and replicas.

    Examples:
      ottla brokers list
      ottla brokers list --json
    """
    with admin_connection(bootstrap) as admin:
        cluster = admin.describe_cluster()
        topics = admin.describe_topics(admin.list_topics(internal=True)).succeeded.values()
        directories = admin.describe_log_dirs().succeeded
    partitions = [partition for topic in topics for partition in topic.partitions]
    leaders = Counter(partition.leader for partition in partitions)
    replicas = Counter(broker for partition in partitions for broker in partition.replicas)
    behind = Counter(
        broker
        for partition in partitions
        for broker in partition.replicas
        if broker not in partition.isr
    )
    rows = [
        (
            broker.id,
            broker.address,
            broker.rack,
            broker.id == cluster.controller,
            leaders[broker.id],
            replicas[broker.id],
            behind[broker.id],
            sum(
                replica.size_bytes
                for directory in directories.get(broker.id, ())
                for replica in directory.replicas.values()
            ),
        )
        for broker in cluster.brokers
    ]
    show(Table("brokers", BROKER_COLUMNS, rows, ("rack", "bytes", "controller")), as_json=as_json)
    return 0


def describe(
    broker: BrokerArgument, *, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER
) -> int:
    """Show the partitions of a broker, with its role and its size on disk.

    Examples:
      ottla brokers describe 0
      ottla brokers describe 0 --json
    """
    with admin_connection(bootstrap) as admin:
        require_broker(admin.describe_cluster(), broker)
        topics = admin.describe_topics(admin.list_topics(internal=True)).succeeded.values()
        directories = admin.describe_log_dirs([broker]).all()[broker]
    on_disk = {
        tp: (directory.path, replica.size_bytes)
        for directory in directories
        for tp, replica in directory.replicas.items()
        if not replica.is_future
    }
    rows = []
    for topic in topics:
        for partition in topic.partitions:
            if broker in partition.replicas:
                path, size_bytes = on_disk.get(
                    TopicPartition(topic.name, partition.index), (None, None)
                )
                role = "leader" if partition.leader == broker else "follower"
                in_sync = broker in partition.isr
                rows.append(
                    (topic.name, partition.index, role, in_sync, partition.replicas,
                     size_bytes, path)
                )  # fmt: skip
    show(
        Table(f"broker {broker}", PARTITION_COLUMNS, rows, ("directory", "bytes")), as_json=as_json
    )
    return 0
