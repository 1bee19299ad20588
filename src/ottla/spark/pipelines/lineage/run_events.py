"""OpenLineage events of a run: which datasets it reads and writes, their columns and row counts.

Owns: when events are sent: START, RUNNING at most every `RUNNING_EVERY_MS`, then COMPLETE or FAIL.
Never: delays or fails a run: events are sent by a thread of their own, one at a time, and what
cannot be sent is a warning.

The run of a pipeline is one run of the job `NAMESPACE` / `PIPELINE`. The client is OpenLineage's
own, with its transports and its configuration.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla import __version__
from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import UserError
from ottla.spark.pipelines.lineage.datasets import Dataset, inputs, outputs
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.spec import Lineage, Pipeline
from ottla.spark.pipelines.variables import mask

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent
    from openlineage.client.generated.base import (
        DatasetFacet,
        InputDatasetFacet,
        OutputDatasetFacet,
        RunFacet,
    )
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

PRODUCER: Final = f"urn:ottla:{__version__}"
RUNNING_EVERY_MS: Final = 30_000
LAST_EVENT_S: Final = 10.0
"""How long the end of a run waits for its last events to be sent."""
SETTINGS: Final = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE")
"""Variables of OpenLineage's client; where one is set, events are sent."""
NAMESPACE: Final = "OPENLINEAGE_NAMESPACE"

OnBatch: TypeAlias = Callable[[QueryProgress], None]


@contextmanager
def run_events(
    pipeline: Pipeline, frames: Mapping[str, DataFrame], clock: Clock
) -> Iterator[list[OnBatch]]:
    """Tell the run in the block; what is to be called for each of its batches."""
    settings = pipeline.lineage
    if settings is None and not any(os.environ.get(name) for name in SETTINGS):
        yield []
        return
    events = RunEvents(_client(settings), pipeline, frames, clock)
    events.send("START")
    try:
        yield [events.on_batch]
    except BaseException as error:
        events.send("FAIL", mask(str(error) or type(error).__name__, pipeline.secrets))
        raise
    else:
        events.send("COMPLETE")
    finally:
        events.close()


class RunEvents:
    """The events of one run."""

    def __init__(
        self,
        client: OpenLineageClient,
        pipeline: Pipeline,
        frames: Mapping[str, DataFrame],
        clock: Clock,
    ) -> None:
        from openlineage.client.uuid import generate_new_uuid

        self._client = client
        self._pipeline = pipeline
        self._clock = clock
        self._run_id = str(generate_new_uuid())
        self._schemas = {name: _schema(frame) for name, frame in frames.items()}
        self._has_one_input = len(inputs(pipeline)) == 1
        self._rows_in: dict[str, int] = {}
        self._rows_out: dict[str, int] = {}
        self._running_due_ms = MonoMs(clock.mono_ms() + RUNNING_EVERY_MS)
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="ottla-lineage")
        self._last: Future[None] | None = None

    def on_batch(self, progress: QueryProgress) -> None:
        query = progress.query
        self._rows_in[query] = self._rows_in.get(query, 0) + progress.rows_in
        self._rows_out[query] = self._rows_out.get(query, 0) + max(progress.rows_out, 0)
        now_ms = self._clock.mono_ms()
        if now_ms >= self._running_due_ms and (self._last is None or self._last.done()):
            self._running_due_ms = MonoMs(now_ms + RUNNING_EVERY_MS)
            self.send("RUNNING")

    def send(self, kind: str, failure: str | None = None) -> None:
        event = self._event(kind, failure)
        self._last = self._sender.submit(self._send, event)

    def _send(self, event: RunEvent) -> None:
        try:
            self._client.emit(event)
        except Exception as error:
            text = mask(str(error) or type(error).__name__, self._pipeline.secrets)
            log.warning("cannot send a lineage event: %s", text.splitlines()[0])

    def close(self) -> None:
        if self._last is not None:
            try:
                self._last.result(LAST_EVENT_S)
            except TimeoutError:
                log.warning("the last lineage event was not sent within %.0f s", LAST_EVENT_S)
        self._sender.shutdown(wait=False, cancel_futures=True)

    def _event(self, kind: str, failure: str | None) -> RunEvent:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
        from openlineage.client.generated.job_type_job import JobTypeJobFacet

        facets: dict[str, RunFacet] = {}
        if failure is not None:
            facets["errorMessage"] = ErrorMessageRunFacet(failure, "python", producer=PRODUCER)
        once = self._pipeline.trigger == "once"
        job_type = JobTypeJobFacet(
            "BATCH" if once else "STREAMING", "OTTLA", "PIPELINE", producer=PRODUCER
        )
        at = datetime.fromtimestamp(self._clock.wall_ms() / 1_000, UTC)
        return RunEvent(
            eventTime=at.isoformat(),
            producer=PRODUCER,
            run=Run(self._run_id, facets),
            job=Job(_namespace(self._pipeline.lineage), self._pipeline.name, {"jobType": job_type}),
            eventType=RunState[kind],
            inputs=[self._input(one) for one in inputs(self._pipeline)],
            outputs=[self._output(one) for one in outputs(self._pipeline)],
        )

    def _input(self, dataset: Dataset) -> InputDataset:
        from openlineage.client.event_v2 import InputDataset
        from openlineage.client.generated.input_statistics_input_dataset import (
            InputStatisticsInputDatasetFacet,
        )

        counts: dict[str, InputDatasetFacet] = {}
        if self._has_one_input and self._rows_in:
            rows = max(self._rows_in.values())  # a query may read it for some sinks only
            facet = InputStatisticsInputDatasetFacet(rowCount=rows, producer=PRODUCER)
            counts["inputStatistics"] = facet
        schema: dict[str, DatasetFacet] = {}
        if dataset.has_columns:
            schema["schema"] = self._schemas[dataset.view]
        return InputDataset(dataset.namespace, dataset.name, counts, facets=schema)

    def _output(self, dataset: Dataset) -> OutputDataset:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.generated.output_statistics_output_dataset import (
            OutputStatisticsOutputDatasetFacet,
        )

        counts: dict[str, OutputDatasetFacet] = {}
        rows = self._rows_out.get(dataset.query or "")
        if rows:
            facet = OutputStatisticsOutputDatasetFacet(rowCount=rows, producer=PRODUCER)
            counts["outputStatistics"] = facet
        schema: dict[str, DatasetFacet] = {"schema": self._schemas[dataset.view]}
        return OutputDataset(dataset.namespace, dataset.name, counts, facets=schema)


def _schema(frame: DataFrame) -> SchemaDatasetFacet:
    from openlineage.client.generated.schema_dataset import (
        SchemaDatasetFacet,
        SchemaDatasetFacetFields,
    )

    fields = [
        SchemaDatasetFacetFields(field.name, field.dataType.simpleString())
        for field in frame.schema
        if not field.name.startswith("_")
    ]
    return SchemaDatasetFacet(fields, producer=PRODUCER)


def _namespace(settings: Lineage | None) -> str:
    given = None if settings is None else settings.namespace
    return given or os.environ.get(NAMESPACE) or "default"


def _client(settings: Lineage | None) -> OpenLineageClient:
    try:
        from openlineage.client import OpenLineageClient
    except ImportError:
        raise UserError("lineage needs a package: pip install 'ottla[lineage]'") from None
    if settings is None or not settings.transport:
        return OpenLineageClient()
    try:
        return OpenLineageClient(config={"transport": dict(settings.transport)})
    except Exception as error:
        raise UserError(f"lineage.transport: {error}") from None
