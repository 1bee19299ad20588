"""`ottla pipeline report`: a picture of what a pipeline has done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.pipeline.options import PipelineFile, Profile, Sets
from ottla.model.errors import UserError
from ottla.spark.pipelines.yaml_file import open_pipeline


def report(
    path: PipelineFile,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE.png", help="Write this .png or .svg file.")
    ] = None,
    sets: Sets = None,
    profile: Profile = None,
) -> int:
    """Draw a pipeline's throughput and lag over time.

    Examples:
      ottla pipeline report views.yaml
      ottla pipeline report views.yaml --to views.svg
    """
    from ottla.spark.pipelines.report import draw, read
    from ottla.spark.pipelines.running_queries import history_path

    pipeline = open_pipeline(path, sets or (), profile)
    history = history_path(pipeline.checkpoint)
    if history is None:
        raise UserError(
            f"checkpoint: {pipeline.checkpoint}: a report needs a checkpoint on a local disk"
        )
    target = to or Path(f"{pipeline.name}.png")
    if not target.parent.is_dir():
        raise UserError(f"--to {target}: there is no folder {target.parent}")
    draw(read(history), pipeline.name, target)
    print(f"{target}: throughput and lag of {pipeline.name}")
    return 0
