"""`ottla log dump`: print what the files of a partition say.

Prints what Kafka's DumpLogSegments prints, line for line: rows on stdout as they are read,
complaints on stderr after them. The exit code is 1 when a file is damaged or contradicts
another, so that scripts notice.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ottla.log.dump.dump import KINDS
from ottla.log.dump.dump import dump as read
from ottla.log.dump.rows import DumpError, DumpOptions, Item, Note, Row, Uncertain, line_of
from ottla.log.files import RealDisk
from ottla.model.errors import UserError


def dump(
    files: Annotated[
        list[Path], typer.Argument(help="Name files of a partition: .log, .index, ...")
    ],
    *,
    print_data_log: Annotated[bool, typer.Option(help="Show keys and values.")] = False,
    deep_iteration: Annotated[
        bool, typer.Option(help="Show records, not only batches; --print-data-log implies it.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option(help="Show only key and value of each record.")
    ] = False,
    verify_index_only: Annotated[
        bool, typer.Option(help="Check indexes without showing their entries.")
    ] = False,
    index_sanity_check: Annotated[
        bool, typer.Option(help="Check only whether indexes are plausible.")
    ] = False,
    max_bytes: Annotated[
        int | None, typer.Option(help="Read at most this many bytes of a .log file.", min=0)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
) -> int:
    """Print the contents of log segment files, as kafka-dump-log.sh does.

    Examples:
      ottla log dump data/orders-0/00000000000000000000.log
      ottla log dump --print-data-log --json data/orders-0/00000000000000000000.log
    """
    wishes = DumpOptions(
        print_data_log,
        deep_iteration,
        skip_record_metadata,
        verify_index_only,
        index_sanity_check,
        max_bytes,
    )
    disk = RealDisk()
    complaints: list[DumpError] = []
    for path in files:
        if path.suffix not in KINDS:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
            continue
        if not as_json:
            print(f"Dumping {path}")
        complaints += _show(path, _readable(path, read(path, disk, wishes)), as_json)
    _complain(complaints)
    return 1 if any(complaint.is_fault for complaint in complaints) else 0


def _readable(path: Path, items: Iterator[Item]) -> Iterator[Item]:
    try:
        yield from items
    except OSError as error:
        raise UserError(f"{error.filename or path}: {error.strerror}") from error


def _show(path: Path, items: Iterator[Item], as_json: bool) -> Iterator[DumpError]:
    """Print rows as they come; pass complaints on, to be shown at the end."""
    for item in items:
        match item:
            case DumpError():
                yield item
            case Row():
                print(_json_of(path, item) if as_json else line_of(item))
            case Note(text):
                print(json.dumps({"file": str(path), "note": text}) if as_json else text)


def _json_of(path: Path, row: Row) -> str:
    fields = {
        name: value.value if isinstance(value, Uncertain) else value
        for name, value in row.fields.items()
    }
    kind = "record" if row.of_record else "row"
    return json.dumps({"file": str(path), "kind": kind, **fields})


def _complain(complaints: list[DumpError]) -> None:
    """Under each heading once, in the order in which the headings first came up."""
    for heading in dict.fromkeys(complaint.heading for complaint in complaints):
        print(heading, file=sys.stderr)
        for complaint in complaints:
            if complaint.heading == heading:
                print(complaint.text, file=sys.stderr)
