"""A run's progress for Prometheus: one gauge a number, labelled by query."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from ottla.model.errors import UserError
from ottla.spark.pipelines.progress import QueryProgress

PREFIX: Final = "ottla_pipeline"
NUMBERS: Final = {
    "rows_in": "Rows read by the last batch.",
    "rows_in_s": "Rows read a second, in the last batch.",
    "rows_out": "Rows written by the last batch.",
    "batch_ms": "How long the last batch took.",
    "batch": "The number of the last batch.",
    "state_rows": "Rows of state that the query keeps.",
    "lag_records": "Records that are in the topics and not read.",
    "lag_s": "Seconds since the query's position was the end of its topics.",
}

LATE: Final = "Rows that came later than the watermark allows, and were dropped."


class PipelineMetrics:
    """A listener that exports the numbers of each query's last batch."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._gauges = {
            name: Gauge(f"{PREFIX}_{name}", doc, ["query"], registry=self.registry)
            for name, doc in NUMBERS.items()
        }

        self._late = Counter(f"{PREFIX}_late_rows", LATE, ["query"], registry=self.registry)

    def serve(self, port: int) -> int:
        """Serve them over HTTP; returns the port, which for 0 is a free one."""
        try:
            server, _ = start_http_server(port, registry=self.registry)
        except OSError as error:
            raise UserError(f"--metrics-port {port}: cannot listen: {error.strerror}") from None
        return int(server.server_port)

    def on_batch(self, progress: QueryProgress) -> None:
        self._late.labels(progress.query).inc(progress.late_rows)
        for name, gauge in self._gauges.items():
            value = getattr(progress, name)
            if value is not None:
                gauge.labels(progress.query).set(value)
