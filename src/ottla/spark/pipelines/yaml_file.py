"""Parses a YAML file into a `Pipeline`.

Owns: opening a file: its values with everything put over them, checked by the models of
`file_models`. Never: starts Spark, connects, or reads a topic; every mistake that can be detected
without that is detected here, before anything runs.

    name: page-views
    bootstrap: localhost:9092
    sources:
      views: {topic: page-views, format: json, schema: "user STRING, url STRING, at TIMESTAMP"}
    steps:
      - {name: named, sql: "SELECT user, url FROM views WHERE user IS NOT NULL"}
    sinks:
      - {name: clean, from: named, topic: {name: clean-views, key: user}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlparse

from ottla.model.errors import UserError
from ottla.spark.pipelines.file_values import load, masked_errors
from ottla.spark.pipelines.spec import DatabaseSource, Pipeline
from ottla.spark.pipelines.variables import YamlValue

if TYPE_CHECKING:
    from ottla.spark.pipelines.file_models.top import FileReading

PACKAGES: Final = ("yaml", "pydantic", "pyspark")


def open_pipeline(
    path: Path, overrides: Sequence[str] = (), profile: str | None = None
) -> Pipeline:
    """The pipeline of a file; UserError where the file or a package it needs is at fault."""
    reading = read_pipeline(path, overrides, profile)
    if reading.mistakes:
        raise UserError("\n".join(reading.mistakes))
    return reading.pipeline


def read_pipeline(
    path: Path, overrides: Sequence[str] = (), profile: str | None = None
) -> FileReading:
    """The pipeline of a file as far as it is right, and every mistake, without a secret."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise UserError(f"pipelines need {package}: pip install 'ottla[spark]'")
    from ottla.spark.pipelines.file_models import top

    values, masks, unresolved = load(path, overrides, profile)
    with masked_errors(masks):
        reading = top.read_pipeline(values, path.parent, unresolved)
    pipeline = replace(
        reading.pipeline,
        secrets=(*masks.secrets, *_passwords(reading.pipeline)),
        variables=masks.variables,
    )
    mistakes = tuple(map(masks.mask, reading.mistakes))
    return reading._replace(pipeline=pipeline, mistakes=mistakes)


def _passwords(pipeline: Pipeline) -> list[str]:
    """Of addresses of databases, which are secret however they came into the file."""
    uris = [source.uri for source in pipeline.files if isinstance(source, DatabaseSource)]
    return [text for text in (urlparse(uri).password for uri in uris) if text]


def parse(values: Mapping[str, YamlValue], folder: Path = Path()) -> Pipeline:
    """The pipeline that a file describes; paths of schema files are relative to `folder`.

    UserError has a line for each mistake.
    """
    from ottla.spark.pipelines.file_models.top import pipeline_of

    return pipeline_of(values, folder)


def json_schema(*, of_tests: bool = False) -> dict[str, YamlValue]:
    """The JSON Schema of pipeline files, or of the files of their tests, for editors."""
    from ottla.spark.pipelines.file_models.test_file import TestFile
    from ottla.spark.pipelines.file_models.top import PipelineFile

    return (TestFile if of_tests else PipelineFile).model_json_schema()
