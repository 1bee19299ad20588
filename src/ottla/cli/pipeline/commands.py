"""`ottla pipeline list-templates`, `new`, `schema`, `test` and `report`: what runs no query."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.console import Table, patience, show
from ottla.cli.options import AsJson
from ottla.cli.pipeline.options import PipelineFile, Profile, Sets
from ottla.model.errors import UserError
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.executors import environment_archive
from ottla.spark.pipelines.trial.check import run_tests
from ottla.spark.pipelines.yaml_file import json_schema, open_pipeline


def list_templates(*, as_json: AsJson = False) -> int:
    """Show the templates that `ottla pipeline new` writes.

    Examples:
      ottla pipeline list-templates
    """
    rows = [(name, templates.purpose(name)) for name in templates.names()]
    show(Table("templates", ("template", "what for"), rows), as_json=as_json)
    return 0


def new(
    template: Annotated[str, typer.Argument(metavar="TEMPLATE", help="Name the template.")],
    to: Annotated[
        Path | None, typer.Argument(metavar="FILE.yaml", help="Write to this file.")
    ] = None,
) -> int:
    """Write a template to a file; default: TEMPLATE.yaml.

    Examples:
      ottla pipeline new views
      ottla pipeline new land orders-to-lake.yaml
    """
    text = templates.text(template)
    path = to or Path(f"{template}.yaml")
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{path} already exists; name another file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    print(f"{path}: {templates.purpose(template)}")
    print(f"Change it, then: ottla pipeline validate {path} && ottla pipeline run {path}")
    return 0


def pack(
    to: Annotated[Path, typer.Argument(metavar="FILE.tar", help="Write to this file.")],
    *,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PACKAGE",
            help="Add a package of Python steps, and its dependencies; repeatable.",
        ),
    ] = None,
) -> int:
    """Write what Spark's executors need of Ottla into an archive.

    Examples:
      ottla pipeline pack ottla-env.tar
      ottla pipeline pack ottla-env.tar.gz --with scikit-learn
    """
    with patience("packing"):
        names = environment_archive.pack(to, more or ())
    print(f"{to}: {len(names)} packages, {to.stat().st_size / 1e6:,.0f} MB")
    return 0


def test(path: PipelineFile, *, sets: Sets = None, profile: Profile = None) -> int:
    """Run the tests in FILE.test.yaml, without a broker.

    Examples:
      ottla pipeline test views.yaml
    """
    failed = count = 0
    with patience("starting Spark"):
        outcomes = run_tests(path, sets or (), profile=profile)
    for outcome in outcomes:
        count += 1
        print(f"{'FAILED' if outcome.differences else 'ok'} {outcome.name}", flush=True)
        for difference in outcome.differences:
            print(f"  {difference}")
        failed += bool(outcome.differences)
    print(f"{count - failed} passed, {failed} failed")
    sys.stdout.flush()
    return 1 if failed else 0


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


def schema(
    *,
    of_tests: Annotated[
        bool, typer.Option("--tests", help="Show that of test files (views.test.yaml).")
    ] = False,
) -> int:
    """Show the JSON Schema of pipeline files, for editors.

    Examples:
      ottla pipeline schema > pipeline.schema.json
      ottla pipeline schema --tests > pipeline-tests.schema.json
    """
    print(json.dumps(json_schema(of_tests=of_tests), indent=2))
    return 0
