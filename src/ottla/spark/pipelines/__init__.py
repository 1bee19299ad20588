"""Pipelines: a file says what is read, how it is transformed and where it is written.

    from ottla.spark import pipelines
    totals = pipelines.run("views.yaml", once=True)

- `yaml_file`    parses a YAML file into a `Pipeline`; its JSON Schema
- `file_values`  its values: includes, profiles, overrides
- `variables`    `${env:…}` and `${file:…}` in its values; pure
- `spec`         what a pipeline is made of; plain values
- `file_models`  the keys of a file, as pydantic models
- `decoding`     decodes the values of a topic into columns
- `encoding`     encodes columns as keys and values, with schemas of a registry
- `views`        sources and steps as Spark's views
- `file_sources` sources that are files: streams of them, and tables that are loaded again
- `databases`    tables of databases, through ADBC drivers
- `python_steps` steps that are functions of a Python file
- `dlq`          rejected rows with reason and origin, and their replay
- `queries`      the streaming queries of a pipeline
- `sinks`        which sinks share a query, and how such a query writes
- `lake`         tables in a lake, without a jar: Delta or Iceberg
- `session`      the Spark session a pipeline runs in, and the `java` it runs on
- `executors` what executors on other machines need of Ottla, as one archive
- `preflight`    what would stop a pipeline when it starts: topics, paths
- `checkpoint_owner` which pipeline a folder of checkpoints belongs to
- `runner`       runs a pipeline: the function `run`
- `running_queries` streaming queries: started, watched and stopped; the history of their batches
- `backfill`     a part of the topics once more, beside the queries that run
- `background`   a run in the background: started, found and stopped
- `restarts`     which failures are followed by a restart, and when; pure
- `progress`     progress of a batch, totals and lag; pure
- `topic_ends`   end offsets of topics, for the lag
- `metrics`      progress for Prometheus
- `report`       progress as a chart
- `lineage`      OpenLineage events of a run
- `group_sync`   translates offsets of consumer groups to a mirror
- `trial`        tests, samples and plans: a pipeline tried before it runs
- `templates`    example files

May import the rest of `ottla.spark` and the client. Importing it imports no pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.spark.pipelines.runner import StopTimeout, run
    from ottla.spark.pipelines.running_queries import QueryFailed
    from ottla.spark.pipelines.trial.check import PipelineTestFailed, check

__all__ = ["PipelineTestFailed", "QueryFailed", "StopTimeout", "check", "run"]

_HOMES = {
    "PipelineTestFailed": "trial.check",
    "QueryFailed": "running_queries",
    "StopTimeout": "runner",
    "check": "trial.check",
    "run": "runner",
}


def __getattr__(name: str) -> object:
    """The public names, imported when first used: commands import this package to parse a file."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
