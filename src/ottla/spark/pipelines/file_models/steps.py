"""What a file says of its steps: SQL, rejection, deduplication, a function of a Python file.

Owns: the keys of a step. Never: runs one; the Python file of a step is parsed, but not run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema

from ottla.spark.pipelines import spec
from ottla.spark.pipelines.file_models.base import (
    TAG,
    FileModel,
    Options,
    Text,
    Texts,
    key,
    mistake_at,
    one_of,
)
from ottla.spark.pipelines.file_models.sources import WatermarkKeys, watermark_of
from ottla.spark.pipelines.file_values import read_text
from ottla.spark.pipelines.variables import YamlValue


class SqlStepKeys(FileModel):
    """A view made by one statement."""

    name: Text = key("The name of the view.")
    sql: Text = key("One statement over the sources and the steps before.")
    watermark: WatermarkKeys | None = key("How late events may come.", None)

    def step(self, _: Path) -> spec.Step:
        return spec.SqlStep(self.name, self.sql, watermark_of(self.watermark))


def _reasons(value: object) -> object:
    if isinstance(value, Mapping) and not value:
        raise ValueError("expected a reason and a predicate, as in no user: user IS NULL")
    return value


class RejectStepKeys(FileModel):
    """A view without the rows for which a predicate holds; those go to the dead letter."""

    name: Text = key("The name of the view.")
    from_: Text = key("The view whose rows are judged.")
    reject: Annotated[Options, BeforeValidator(_reasons)] = key("Reasons and their predicates.")
    dead_letter: Text | None = key("The topic for rows that are refused.", None)

    def step(self, _: Path) -> spec.Step:
        return spec.RejectStep(self.name, self.from_, self.reject, self.dead_letter)


class DeduplicateStepKeys(FileModel):
    """A view with the first row of each key."""

    name: Text = key("The name of the view.")
    from_: Text = key("The view whose repeated rows are dropped.")
    deduplicate: Texts = key("The columns of the key.")
    within: WatermarkKeys | None = key("For how long keys are known.", None)

    def step(self, _: Path) -> spec.Step:
        return spec.DeduplicateStep(
            self.name, self.from_, self.deduplicate, watermark_of(self.within)
        )


def _arguments(value: object) -> object:
    if not isinstance(value, Mapping) or not all(map(str.isidentifier, map(str, value))):
        raise ValueError("expected a mapping of parameter names and values")
    return value


class PythonStepKeys(FileModel):
    """A view made by a function of a Python file, from DataFrames to a DataFrame."""

    name: Text = key("The name of the view.")
    python: Text = key("A file beside this one and a function of it, as in steps.py:clean.")
    from_: Texts = key("The views that the function is given.", ())
    arguments: Annotated[
        dict[str, YamlValue], BeforeValidator(_arguments), WithJsonSchema({"type": "object"})
    ] = key("Handed to the function by keyword.", {})

    def step(self, folder: Path) -> spec.Step:
        """ValidationError for a file that cannot be read or is not Python."""
        file, separator, function = self.python.rpartition(":")
        if not separator or not file.endswith(".py") or not function.isidentifier():
            raise mistake_at("python", "expected a file and a function of it, as in steps.py:clean")
        path = (folder / file).resolve()
        try:
            ast.parse(read_text(path))
        except OSError as error:
            raise mistake_at("python", f"{path}: {error.strerror}") from None
        except SyntaxError as error:
            raise mistake_at("python", f"{path}, line {error.lineno}: {error.msg}") from None
        if not self.from_:
            raise mistake_at(
                "from", "missing: the view, or the list of views, that the function is given"
            )
        return spec.PythonStep(self.name, self.from_, path, function, self.arguments)


KINDS: Final = ("sql", "reject", "deduplicate", "python")


def _has_one_kind(value: object) -> object:
    one_of(value, KINDS)
    return value


def _kind(value: YamlValue) -> str:
    return TAG + one_of(value, KINDS)


StepKeys = Annotated[
    Annotated[SqlStepKeys, Tag(f"{TAG}sql")]
    | Annotated[RejectStepKeys, Tag(f"{TAG}reject")]
    | Annotated[DeduplicateStepKeys, Tag(f"{TAG}deduplicate")]
    | Annotated[PythonStepKeys, Tag(f"{TAG}python")],
    Discriminator(_kind),
    BeforeValidator(_has_one_kind),
]
