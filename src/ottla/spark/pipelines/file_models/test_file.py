"""What a file of tests says: records of sources, and expected rows.

Owns: its keys. Never: encodes a record; `trial.fixtures` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

from ottla.spark.pipelines.file_models.base import (
    FileModel,
    IsList,
    IsMapping,
    Text,
    key,
)
from ottla.spark.pipelines.variables import YamlValue

ROWS: Final = {"type": "array", "items": {"type": "object"}}


def _rows(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise ValueError("expected a list of rows, each a mapping of columns and values")
    return value


def _values(value: object) -> object:
    if not isinstance(value, str | list):
        raise ValueError("expected a list of values, or a file with one value on each line")
    return value


Rows = Annotated[list[YamlValue], BeforeValidator(_rows), WithJsonSchema(ROWS)]
ExpectedRows = Annotated[dict[str, Rows], IsMapping]
Values = Annotated[
    str | list[YamlValue],
    BeforeValidator(_values),
    WithJsonSchema({"anyOf": [{"type": "array"}, {"type": "string"}]}),
]


class TestKeys(FileModel):
    """One test."""

    name: Text = key("What the test shows.")
    given: Annotated[dict[str, Values], IsMapping] = key("Records of the sources.")
    expect: ExpectedRows = key("Rows of views, by the columns that are named.", {})
    dead_letters: ExpectedRows = key("Refused rows: reason, key, value, topic.", {})
    records: ExpectedRows = key("What sinks write to topics: key and value as text.", {})


def _tests(value: object) -> object:
    if not value:
        raise ValueError("expected at least one, with name, given and expect")
    return value


class TestFile(FileModel):
    """The tests of a pipeline, in a file beside it."""

    tests: Annotated[list[TestKeys], IsList, BeforeValidator(_tests)] = key("The tests.")
