"""The argument and the options that name a pipeline file and override its values."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TextIO

import typer

from ottla.spark.pipelines.executors import environment_archive
from ottla.spark.pipelines.file_values import masked_errors
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.variables import Masks

PipelineFile = Annotated[Path, typer.Argument(metavar="FILE.yaml", help="Name the pipeline file.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Override a value of the file; repeatable."),
]
Profile = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="Use this profile of the file, such as prod."),
]
Archive = Annotated[
    Path | None,
    typer.Option(
        "--archive", metavar="FILE", help="Send this archive of Ottla to the executors; see pack."
    ),
]


def with_archive(pipeline: Pipeline, archive: Path | None) -> Pipeline:
    """The pipeline whose executors get the archive; UserError if it lacks what tasks need."""
    if archive is None:
        return pipeline
    from ottla.spark.pipelines.executors.task_packages import task_packages

    environment_archive.check(archive, task_packages(pipeline))
    return replace(pipeline, spark={**environment_archive.settings(archive), **pipeline.spark})


@contextmanager
def masked_output(secrets: Sequence[str]) -> Iterator[None]:
    """Nothing that is printed in the block, errors included, shows a secret."""
    if not secrets:
        yield
        return
    masks = Masks(tuple(secrets))
    with (
        redirect_stdout(MaskedStream(sys.stdout, masks)),
        redirect_stderr(MaskedStream(sys.stderr, masks)),
        masked_errors(masks),
    ):
        yield


class MaskedStream(io.TextIOBase):
    """A text stream in front of another; secrets written to it in one piece are masked."""

    def __init__(self, target: TextIO, masks: Masks) -> None:
        self._target = target
        self._masks = masks

    def write(self, text: str) -> int:
        self._target.write(self._masks.mask(text))
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def isatty(self) -> bool:
        return self._target.isatty()

    def fileno(self) -> int:
        return self._target.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._target.encoding
