"""A file on the command line as a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ottla.model.errors import UserError
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.spec import Pipeline

PipelineFile = Annotated[Path, typer.Argument(metavar="FILE.yaml", help="What to run.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Put a value over the file's; repeatable."),
]


def opened(path: Path, sets: Sequence[str] | None) -> Pipeline:
    """The pipeline of a file, or what is wrong with it."""
    for package in ("yaml", "pyspark"):
        if find_spec(package) is None:
            raise UserError(f"pipelines need {package}: pip install 'ottla[spark]'")
    return yaml_file.parse(yaml_file.load(path, sets or ()), path.parent)
