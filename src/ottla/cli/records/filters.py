"""Which records are shown.

Pure. A filter is `key=REGEX`, `value=REGEX` or `header.NAME=REGEX`; all that are given must hold,
and an expression holds where it is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ottla.cli.argument_parsing import pattern
from ottla.client.consumer.record import Record
from ottla.model.errors import UserError

Wanted: TypeAlias = Callable[[Record[bytes, bytes]], bool]
OPTION: Final = "--filter"
HEADER: Final = "header."


def wanted(filters: Sequence[str]) -> Wanted:
    """What holds for a record that passes every filter."""
    checks = [_check(text) for text in filters]
    return lambda record: all(check(record) for check in checks)


def _check(text: str) -> Wanted:
    field, equals, expression = text.partition("=")
    wish = pattern(OPTION, expression)
    if equals and field == "key":
        return lambda record: _found(wish, record.key)
    if equals and field == "value":
        return lambda record: _found(wish, record.value)
    if equals and field.startswith(HEADER) and field != HEADER:
        name = field.removeprefix(HEADER)
        return lambda record: any(
            given == name and _found(wish, value) for given, value in record.headers
        )
    raise UserError(f"{OPTION} {text!r}: expected key=REGEX, value=REGEX or header.NAME=REGEX")


def _found(wish: re.Pattern[str], data: bytes | None) -> bool:
    return data is not None and wish.search(data.decode(errors="backslashreplace")) is not None
