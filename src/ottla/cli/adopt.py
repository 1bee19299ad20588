"""`ottla adopt DIR`: go on with a data directory that Apache Kafka wrote, or with one of our own
whose metadata store was lost.

Reads what the directory holds, shows it, and writes the metadata store that a broker needs beside
it. The records, and all else that Kafka wrote, stay as they are; to undo it, remove the store.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from ottla.cli import topic_settings
from ottla.cli.adopt_plan import Plan, nodes, plan
from ottla.cli.console import table
from ottla.cli.topic_settings import Settings
from ottla.log.directories.directory import LOCK_FILE
from ottla.log.directories.inspection import DirectoryContents, inspect
from ottla.log.directories.partition_metadata import id_text
from ottla.log.files import Disk, RealDisk
from ottla.model.errors import UserError
from ottla.store import paths
from ottla.store.embedded import EmbeddedStore
from ottla.store.sqlite_database import FILE_NAME, SqliteDatabase


def adopt(
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR", help="Name every directory of the broker's log.dirs."),
    ],
    configs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read topic settings: JSON or output of kafka-configs.sh.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be taken over; change nothing.")
    ] = False,
    recover: Annotated[
        bool, typer.Option("--recover", help="Adopt even if the broker was not shut down cleanly.")
    ] = False,
) -> int:
    """Adopt a data directory of Apache Kafka (3.9 or 4.x) in place.

    A directory of Ottla's own whose metadata store is damaged is taken over the same way, once
    ottla-store.sqlite has been moved away; settings of topics were in the store: see --configs.

    Examples:
      ottla adopt ./kafka-logs --dry-run
      ottla adopt ./kafka-logs --configs settings.json
    """
    disk = RealDisk()
    settings = {} if configs is None else _settings(configs)
    with ExitStack() as locks:
        for path in directories:
            lock_directory(path, disk, locks, dry_run=dry_run)
        surveys = [inspect(path, disk) for path in directories]
        planned = plan(surveys, settings, new_ids=iter(uuid4, None))
        _show(planned)
        _refuse_unclean(surveys, recover or dry_run)
        store = directories[0] / FILE_NAME
        if dry_run:
            if store.exists():
                raise UserError(f"{store} exists: this directory has been adopted already")
            print("Nothing was changed.")
            return 0
        asyncio.run(_write(planned, store))
    print(
        f"{len(planned.topics)} topics are ready. Serve them with: "
        f"ottla serve --data-dir {','.join(map(str, directories))} "
        f"--set broker.id={planned.broker_id}"
    )
    return 0


def _settings(path: Path) -> Settings:
    try:
        return topic_settings.parse(path.read_text(encoding="utf-8"), source=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}") from None


def lock_directory(path: Path, disk: Disk, locks: ExitStack, *, dry_run: bool = False) -> None:
    """Keep brokers out, theirs and ours. A dry run does not even make the lock's file."""
    if not path.is_dir():
        raise UserError(f"{path}: there is no such directory")
    lock = path / LOCK_FILE
    if dry_run and not disk.exists(lock):
        return
    try:
        locks.callback(disk.lock(lock).release)
    except BlockingIOError:
        raise UserError(f"{path}: in use by another process; stop that broker first") from None


def _refuse_unclean(surveys: Sequence[DirectoryContents], allowed: bool) -> None:
    unclean = [str(one.path) for one in surveys if not one.stopped_cleanly]
    if unclean and not allowed:
        raise UserError(
            f"{', '.join(unclean)}: no clean shutdown recorded. Start the broker once more "
            "and stop it (Kafka's with kafka-server-stop.sh), or give --recover: each log is then "
            "read from its last checkpoint on and cut at the first torn record"
        )


def _show(planned: Plan) -> None:
    rows = [
        (
            topic.name,
            id_text(topic.topic_id),
            len(topic.partitions),
            sum(one.end_offset - one.start_offset for one in topic.partitions),
            sum(one.size for one in topic.partitions),
            " ".join(f"{key}={value}" for key, value in sorted(topic.overrides.items())) or "-",
        )
        for topic in planned.topics
    ]
    print(f"broker {planned.broker_id}, cluster {planned.cluster_id or '(new)'}")
    table("", ("topic", "id", "partitions", "offsets", "bytes", "settings"), rows)
    for remark in planned.remarks:
        print(f"note: {remark}", file=sys.stderr)


async def _write(planned: Plan, path: Path) -> None:
    """All nodes in one step: after a crash there is the whole tree or none."""
    os.umask(0o077)  # users' credentials will stand there
    store = EmbeddedStore(SqliteDatabase(path))
    await store.start()
    try:
        if await store.get(paths.TOPICS) is not None and await store.children(paths.TOPICS):
            raise UserError(
                f"{path} already contains topics: this directory has been adopted; "
                f"start the broker with: ottla serve --data-dir {path.parent}"
            )
        wanted = nodes(planned)
        found = await store.get_many([node.path for node in wanted])
        await store.multi([node for node, old in zip(wanted, found, strict=True) if old is None])
    finally:
        await store.close()
