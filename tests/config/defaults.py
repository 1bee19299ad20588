"""Checks that the defaults of a group of settings are those of Kafka 4.2.

A row is Kafka's name, the text Kafka shows for the default, and the ids it shows.
"""

from __future__ import annotations

from typing import TypeAlias

import pytest

from ottla.config.settings import Settings

Row: TypeAlias = tuple[str, str | None, tuple[str, ...]]


def marked(rows: list[Row]) -> list[object]:
    """Each row as a parameter that carries its ids."""
    return [
        pytest.param(name, text, id=name, marks=[pytest.mark.spec(*ids)] if ids else [])
        for name, text, ids in rows
    ]


def check(kind: type[Settings], name: str, text: str | None) -> None:
    setting = kind.SETTINGS[name]
    assert setting.show(setting.default) == text
    assert setting.doc.endswith(".")
    if text is not None:  # a default must itself be acceptable
        assert setting.read(text) == setting.default
