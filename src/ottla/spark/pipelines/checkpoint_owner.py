"""Whose checkpoints a folder holds.

Owns: the file `pipeline.json` beside the checkpoints of a pipeline's queries, and the refusal of a
folder that belongs to another pipeline or to a later version. Only on a local disk: elsewhere the
folder is not looked at. A folder with checkpoints of a version that wrote no such file is taken.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

from ottla.model.errors import UserError

FORMAT: Final = 1
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
        (folder / FILE).write_text(json.dumps({"format": FORMAT, "pipeline": pipeline}) + "\n")
    except OSError as error:
        raise UserError(f"checkpoint: {folder}: {error.strerror}") from None


def check_owner(checkpoint: str, pipeline: str) -> None:
    """UserError if a folder holds the checkpoints of another pipeline or of a later format."""
    folder = local_folder(checkpoint)
    if folder is None:
        return
    path = folder / FILE
    try:
        fields = json.loads(path.read_text())
        owner, format = str(fields["pipeline"]), int(fields["format"])
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"checkpoint: cannot read {path}: {error}") from None
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
