"""`ottla pipeline validate`: what is wrong with a file, before it runs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.cli.console import patience
from ottla.cli.pipeline.options import PipelineFile, Profile, Sets, masked_output
from ottla.spark.pipelines.file_values import masked_errors
from ottla.spark.pipelines.preflight import findings
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.variables import Masks
from ottla.spark.pipelines.yaml_file import read_pipeline

OF_SPARK: Final = "SQL and columns"
STARTING: Final = "topics, paths and checkpoints"
SCHEMAS: Final = frozenset(("registry", "sources", "steps"))
"""Keys without which it is not known which views there are, and their columns."""
PLACES: Final = frozenset(("name", "bootstrap", "checkpoint"))
"""Keys without which it is not known where those are."""


def validate(
    path: PipelineFile,
    *,
    sets: Sets = None,
    profile: Profile = None,
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Check keys and options only, without Spark.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Check the file and its SQL, but ask no broker.")
    ] = False,
) -> int:
    """Check a pipeline file: keys, SQL, topics, paths and checkpoints.

    Examples:
      ottla pipeline validate views.yaml
      ottla pipeline validate views.yaml --offline
      ottla pipeline validate views.yaml --words-only
    """
    reading = read_pipeline(path, sets or (), profile)
    pipeline = reading.pipeline
    masks = Masks(pipeline.secrets, pipeline.variables)
    groups = {"keys and options": reading.mistakes}
    with masked_output(pipeline.secrets), masked_errors(masks):
        if not words_only:
            groups[OF_SPARK] = _skipped_checks(reading.wrong_keys & SCHEMAS)
            groups[OF_SPARK] += () if groups[OF_SPARK] else _analyse(pipeline, reading.left_out)
            groups[STARTING] = _skipped_checks(reading.wrong_keys & PLACES)
            if not groups[STARTING]:
                with patience(f"checking {STARTING}"):
                    groups[STARTING] = (*findings(pipeline, offline=offline),)
    found = {group: [*map(masks.mask, lines)] for group, lines in groups.items() if lines}
    if found:
        return _report(path, found)
    views = [view.name for view in (*pipeline.sources, *pipeline.files, *pipeline.steps)]
    sinks = ", ".join(f"{sink.name} (from {sink.source})" for sink in pipeline.sinks)
    print(f"{path}: valid. Views: {', '.join(views)}. Sinks: {sinks}.")
    return 0


def _skipped_checks(wrong: Collection[str]) -> tuple[str, ...]:
    """What is said of a group that is not checked while these keys are wrong."""
    return (f"not checked before {', '.join(sorted(wrong))} is right",) if wrong else ()


def _report(path: Path, found: Mapping[str, Sequence[str]]) -> int:
    """Print the mistakes, in their groups; the code is 1 where the file itself is right."""
    count = sum(map(len, found.values()))
    print(f"ottla: {path}: {count} mistake{'s' if count > 1 else ''}", file=sys.stderr)
    for group, lines in found.items():
        print(f"{group}:", file=sys.stderr)
        for line in lines:
            print(f"  {line}", file=sys.stderr)
    return 1 if list(found) == [STARTING] else 2


def _analyse(pipeline: Pipeline, left_out: Iterable[str]) -> tuple[str, ...]:
    """What Spark rejects of the SQL and of the columns that sinks name."""
    from ottla.spark.pipelines.queries import sink_mistakes
    from ottla.spark.pipelines.session import session
    from ottla.spark.pipelines.views import ViewMistakes, Views

    if not (pipeline.sources or pipeline.files):
        return ()
    mistakes = ViewMistakes(set(left_out))
    with patience("checking the SQL with Spark"):
        spark = session(pipeline.name, "local[1]", pipeline.spark, secrets=pipeline.secrets)
        try:
            views = Views(spark, pipeline, mistakes=mistakes)
            return (*mistakes.lines, *sink_mistakes(pipeline, views))
        finally:
            spark.stop()
