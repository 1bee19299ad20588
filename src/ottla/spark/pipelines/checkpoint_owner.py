"""Whose checkpoints a folder holds.

Owns: the file `pipeline.json` beside the checkpoints of a pipeline's queries: its name, and which
sinks share a query; and the refusal of a folder that belongs to another pipeline or to a later
version. Only on a local disk: elsewhere the folder is not looked at, and no query is shared. A
folder with checkpoints of a version that wrote no such file is taken.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

from ottla.model.errors import UserError
from ottla.spark.pipelines.sinks.query_layout import Record

FORMAT: Final = 2
PLAIN_FORMAT: Final = 1
"""Of a folder without shared queries: versions that know none of them may go on with it."""
FILE: Final = "pipeline.json"


def claim(checkpoint: str, pipeline: str) -> None:
    """Write down whose folder it is; UserError if it is another's."""
    folder = local_folder(checkpoint)
    if folder is None:
        return
    check_owner(checkpoint, pipeline)
    if (folder / FILE).exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, {"format": PLAIN_FORMAT, "pipeline": pipeline})
    except OSError as error:
        raise UserError(f"checkpoint: {folder}: {error.strerror}") from None


def check_owner(checkpoint: str, pipeline: str) -> None:
    """UserError if a folder holds the checkpoints of another pipeline or of a later format."""
    folder = local_folder(checkpoint)
    if folder is None:
        return
    fields = _read(folder / FILE)
    if not fields:
        return
    owner, format = str(fields["pipeline"]), int(fields["format"])
    if format > FORMAT:
        raise UserError(
            f"checkpoint: {folder} was written by a later version (format {format}, supported: "
            f"{FORMAT}); use that version or a new checkpoint"
        )
    if owner != pipeline:
        raise UserError(
            f"checkpoint: {folder} holds the checkpoints of the pipeline {owner}, not of "
            f"{pipeline}; set checkpoint: to another folder"
        )


class Checkpoints:
    """What a folder of checkpoints says of the queries that have begun there."""

    def __init__(self, checkpoint: str) -> None:
        self._folder = local_folder(checkpoint)

    @property
    def can_share(self) -> bool:
        """Whether it can be written down which sinks share a query."""
        return self._folder is not None

    def has(self, query: str) -> bool:
        """Whether a query of this name has begun."""
        return self._folder is not None and (self._folder / query / "metadata").exists()

    def unfinished(self, query: str) -> int | None:
        """The batch that was begun and not ended, and runs again; None where there is none."""
        if self._folder is None:
            return None
        begun, ended = (_last(self._folder / query / name) for name in ("offsets", "commits"))
        return begun if begun > ended else None

    def shared_queries(self) -> Record:
        """The queries that sinks share, with the members of each of their writes."""
        fields = {} if self._folder is None else _read(self._folder / FILE)
        queries: Mapping[str, Mapping[str, list[str]]] = fields.get("queries", {})
        return {
            query: {write: tuple(names) for write, names in writes.items()}
            for query, writes in queries.items()
        }

    def state_steps(self, query: str) -> Mapping[str, str] | None:
        """The steps that made the state of a query when it last started; None: not known."""
        fields = {} if self._folder is None else _read(self._folder / FILE)
        steps: Mapping[str, str] | None = fields.get("state", {}).get(query)
        return steps

    def record(
        self,
        pipeline: str,
        queries: Record | None = None,
        state: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Write down who shares a query, and what makes the state of one, before it starts."""
        if self._folder is None:
            return
        before = _read(self._folder / FILE)
        fields = before or {"format": PLAIN_FORMAT, "pipeline": pipeline}
        if queries:
            named = {query: dict(writes) for query, writes in queries.items()}
            fields = {**fields, "format": FORMAT, "queries": named}
        if state:
            fields = {**fields, "state": {**fields.get("state", {}), **state}}
        if json.dumps(fields) != json.dumps(before):
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(self._folder, fields)


def _last(log: Path) -> int:
    """The number of the last entry in one of Spark's logs; -1: it has none."""
    names = [path.name for path in log.iterdir()] if log.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _read(path: Path) -> dict[str, Any]:
    """The fields of the file; none where there is no file."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text())
        str(fields["pipeline"]), int(fields["format"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"checkpoint: cannot read {path}: {error}") from None
    return fields


def _write(folder: Path, fields: Mapping[str, object]) -> None:
    """In one step: a driver that is killed leaves the file as it was."""
    new = folder / f".{FILE}.new"
    new.write_text(json.dumps(fields) + "\n")
    new.replace(folder / FILE)


def local_folder(path: str) -> Path | None:
    """A folder on a local disk; None for any other path."""
    parts = urlparse(path)
    return Path(unquote(parts.path)) if parts.scheme in ("", "file") else None


def is_writable(path: str) -> bool:
    """Whether a folder can be written or created; True where that cannot be known from here."""
    folder = local_folder(path)
    if folder is None:
        return True
    folder = folder.absolute()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
