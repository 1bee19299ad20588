"""Checks that a group of settings has Kafka 4.2's defaults, and changes live where Kafka's do.

A row is Kafka's name, the text Kafka shows for the default, when it may change (`start`, live for
one `broker` or for the `cluster`, live for a `topic`), and the mark of the items it shows.
"""

from __future__ import annotations

from typing import TypeAlias

import pytest

from ottla.config.settings import Settings

spec = pytest.mark.spec
Row: TypeAlias = tuple[str, str | None, str] | tuple[str, str | None, str, pytest.MarkDecorator]


def marked(rows: list[Row]) -> list[object]:
    """Each row as a parameter that carries its mark."""
    return [pytest.param(*row[:3], id=row[0], marks=row[3:]) for row in rows]


def check(kind: type[Settings], name: str, text: str | None, scope: str) -> None:
    setting = kind.SETTINGS[name]
    assert setting.show(setting.default) == text
    assert setting.scope == (None if scope in ("start", "topic") else scope)
    assert setting.doc.endswith(".")
    if text is not None:  # a default must itself be acceptable
        assert setting.read(text) == setting.default
