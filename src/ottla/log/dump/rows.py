"""What a dump consists of: rows, notes and complaints, and how they are written as text.

Owns: the words shared by the readers of each kind of file. Never: reads a file, or prints. Names
and order of the fields are those of Kafka's own dump tool, so that what reads its output reads
ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeAlias

from ottla.model.errors import UserError


class Row(NamedTuple):
    """One line of names and values; a record's row stands below that of its batch."""

    fields: dict[str, object]
    of_record: bool = False


class Note(NamedTuple):
    """A line of plain text between the rows."""

    text: str


class Uncertain(NamedTuple):
    """A number that may be absent; Java shows the difference."""

    value: int | None


class DumpError(NamedTuple):
    """Something that does not fit. Those of one heading are shown together, after the rows.

    Gaps between offsets are worth a word but are no fault: compaction leaves them.
    """

    heading: str
    text: str
    is_fault: bool = True


Item: TypeAlias = Row | Note | DumpError


class DumpOptions(NamedTuple):
    """What to show, by the names of the command's options."""

    print_data_log: bool = False
    deep_iteration: bool = False
    skip_record_metadata: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_bytes: int | None = None
    max_message_size: int = 5 * 1024 * 1024

    @property
    def deep(self) -> bool:
        return self.deep_iteration or self.print_data_log


def base_offset(path: Path) -> int:
    """The offset a segment's file is named after."""
    digits = path.name.partition(".")[0]
    if not digits.isdigit():
        raise UserError(f"{path}: expected a name such as 00000000000000000000{path.suffix}")
    return int(digits)


def bad_byte(path: Path, position: int, reason: str) -> DumpError:
    """Where a file stops making sense."""
    return DumpError(f"{path} is damaged", f"byte {position}: {reason}")


def text_of(value: object) -> str:
    """A field's value as Java would print it."""
    match value:
        case bool():
            return "true" if value else "false"
        case Uncertain(None):
            return "OptionalLong.empty"
        case Uncertain(number):
            return f"OptionalLong[{number}]"
        case list():
            return f"[{','.join(map(str, value))}]"
        case _:
            return str(value)


def line_of(row: Row) -> str:
    fields = " ".join(f"{name}: {text_of(value)}" for name, value in row.fields.items())
    return f"| {fields}" if row.of_record else fields
