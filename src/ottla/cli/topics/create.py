"""`ottla topics create`: new topics."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import INT16_MAX, INT32_MAX
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, Configs, pairs
from ottla.cli.setting_names import suggesting
from ottla.client.admin import NewTopic
from ottla.config.topic import TopicConfig
from ottla.model.errors import ErrorCode, KafkaError

PartitionCount = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        "-p",
        min=1,
        max=INT32_MAX,
        help="Set the number of partitions; default: the broker's.",
    ),
]


def create(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC", help="Name the new topics.")],
    *,
    partitions: PartitionCount = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", "-r", min=1, max=INT16_MAX, help="Set the replication factor."
        ),
    ] = None,
    config: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Skip topics that exist.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Create topics.

    Examples:
      ottla topics create orders --partitions 3
      ottla topics create clicks --if-not-exists --config retention.ms=86400000
    """
    configs = pairs("--config", config)
    wanted = [NewTopic(name, partitions or -1, replication_factor or -1, configs) for name in names]
    with admin_connection(bootstrap) as admin:
        outcomes = admin.create_topics(wanted)
    rows = [
        (topic.name, topic.partitions, topic.replication_factor, str(topic.id))
        for topic in outcomes.succeeded.values()
    ]
    if rows or as_json:
        show(
            Table(
                "created",
                ("topic", "partitions", "replication factor", "id"),
                rows,
                ("replication factor",),
            ),
            as_json=as_json,
        )
    return failures(
        {
            name: suggesting(error, configs, TopicConfig.SETTINGS)
            for name, error in outcomes.failed.items()
            if not (if_not_exists and _exists(error))
        }
    )


def _exists(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.topic_already_exists
