"""`ottla brokers drain`, `decommission`: move leaders or replicas away from a broker."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.brokers.plans import check_safe, without_leaders_on, without_replicas_on
from ottla.cli.confirmation import DryRun
from ottla.cli.connection import admin_connection
from ottla.cli.console import failures
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.cli.reassign.moves import as_json
from ottla.cli.reassign.progress import left, wait
from ottla.client.admin import ClusterInfo
from ottla.model.errors import UserError

BrokerArgument = Annotated[int, typer.Argument(metavar="BROKER", help="Name the broker by its id.")]
ORDER_TIMEOUT_S = 30.0
"""A change of the order of replicas copies nothing."""


def drain(broker: BrokerArgument, *, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """Move leaders away from a broker; its replicas stay and follow.

    The preferred leader of its partitions becomes another in-sync replica, so leaders do not come
    back by themselves: `ottla reassign plan` spreads them again. A clean stop of a broker moves its
    leaders, too; drain is for brokers that must not lead for a while.

    Examples:
      ottla brokers drain 0
    """
    with admin_connection(bootstrap) as admin:
        require_broker(admin.describe_cluster(), broker)
        topics = list(admin.describe_topics(admin.list_topics(internal=True)).all().values())
        led = sum(partition.leader == broker for topic in topics for partition in topic.partitions)
        plan = without_leaders_on(topics, broker)
        outcomes = admin.alter_partition_reassignments({**plan})
        wait(admin, outcomes.succeeded, ORDER_TIMEOUT_S)
        if outcomes.succeeded:
            admin.elect_leaders(outcomes.succeeded)
        topics = list(admin.describe_topics([topic.name for topic in topics]).all().values())
    still = sum(partition.leader == broker for topic in topics for partition in topic.partitions)
    print(f"broker {broker}: {led - still} leaders moved away, {still} left")
    if still:
        print("left are partitions without another in-sync replica: see ottla brokers describe")
    return failures(outcomes.failed) or int(bool(still))


def decommission(
    broker: BrokerArgument,
    *,
    dry_run: DryRun = False,
    timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Wait this long for the moves.")
    ] = 3_600.0,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Move all replicas of a broker to the others, so that it can be removed.

    Refused if other replicas are not in sync or too few brokers would be left. Moves that are not
    done when the time is over go on; the same command waits for them again.

    Examples:
      ottla brokers decommission 0 --dry-run
    """
    with admin_connection(bootstrap) as admin:
        cluster = admin.describe_cluster()
        require_broker(cluster, broker)
        topics = list(admin.describe_topics(admin.list_topics(internal=True)).all().values())
        plan = without_replicas_on(topics, broker, cluster.brokers)
        check_safe(topics, broker)
        if dry_run:
            print(as_json(plan))
            return 0
        moving = admin.list_partition_reassignments(list(plan)) if plan else {}
        new = {tp: replicas for tp, replicas in plan.items() if tp not in moving}
        outcomes = admin.alter_partition_reassignments({**new})
        begun = [*moving, *outcomes.succeeded]
        if begun:
            size = left(admin, begun).bytes_left
            print(f"moving {len(begun)} partitions, {size / 1e6:,.1f} MB to copy", flush=True)
        remaining = wait(admin, begun, timeout)
    if remaining.partitions:
        print(f"{remaining.partitions} partitions still move; see ottla reassign verify")
        return 1
    if not outcomes.failed:
        print(f"broker {broker} has no replicas left: stop it, and it is removed")
    return failures(outcomes.failed)


def require_broker(cluster: ClusterInfo, broker: int) -> None:
    """UserError unless the broker is alive."""
    ids = [each.id for each in cluster.brokers]
    if broker not in ids:
        raise UserError(
            f"broker {broker} is not alive or does not exist; live brokers: "
            f"{', '.join(map(str, ids))}"
        )
