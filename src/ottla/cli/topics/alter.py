"""`ottla topics alter`: more partitions, other settings."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import INT32_MAX
from ottla.cli.completion import topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap, Configs, pairs
from ottla.cli.setting_names import suggesting
from ottla.client.admin import Resource
from ottla.config.topic import TopicConfig
from ottla.model.errors import KafkaError, UserError


def alter(
    name: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Name the topic.", autocompletion=topic_names)
    ],
    *,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            max=INT32_MAX,
            help="Raise the number of partitions to this.",
        ),
    ] = None,
    config: Configs = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            "--delete-config", metavar="KEY", help="Reset a setting to its default; repeatable."
        ),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Change the partition count or settings of a topic.

    Records with a key go to other partitions once there are more; there is no way back to fewer.

    Examples:
      ottla topics alter orders --partitions 6
      ottla topics alter orders --config retention.ms=3600000 --delete-config segment.ms
    """
    changes: dict[str, str | None] = {
        **dict.fromkeys(delete_config or ()),
        **pairs("--config", config),
    }
    if partitions is None and not changes:
        raise UserError("topics alter: give --partitions, --config or --delete-config")
    with admin_connection(bootstrap) as admin:
        if changes:
            try:
                admin.incremental_alter_configs({Resource.topic(name): changes}).all()
            except KafkaError as error:
                raise suggesting(error, changes, TopicConfig.SETTINGS) from None
        if partitions is not None:
            admin.create_partitions({name: partitions}).all()
    print(f"altered {name}")
    return 0
