"""Counts of Produce requests, and how long brokers took to answer them.

Owns: the samples that an average and a maximum of the latency are computed from. Pure: the time is
an argument. Called once for each request and each response; read from any thread.

As in Kafka's clients, the latency is that of two samples of 30 seconds, the last of which is being
filled: a maximum since the start would hide that a broker has recovered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.producer.buffer.batch import NS_PER_MS, Batch

SAMPLE_NS: Final = 30_000_000_000
SAMPLES: Final = 2


class Latency(NamedTuple):
    """Milliseconds from a request to its response; 0 without one."""

    average_ms: float = 0.0
    max_ms: float = 0.0


@dataclass(slots=True)
class _Sample:
    """The responses of 30 seconds."""

    start_ns: int
    count: int = 0
    total_ns: int = 0
    max_ns: int = 0


class RequestMetrics:
    """The Produce requests of one producer."""

    def __init__(self) -> None:
        self.count = 0
        """Requests sent, retries included."""
        self.records = 0
        """Records in them."""
        self._samples: tuple[_Sample, ...] = ()  # replaced, not changed: readers hold no lock

    @property
    def average_records(self) -> float:
        """Records of a request."""
        return self.records / max(self.count, 1)

    def on_sent(self, batches: Iterable[Batch]) -> None:
        """A request with these batches was handed to its connection."""
        self.count += 1
        self.records += sum(batch.records for batch in batches)

    def on_response(self, latency_ns: int, now_ns: int) -> None:
        """A request was answered."""
        sample = self._samples[-1] if self._samples else None
        if sample is None or now_ns - sample.start_ns >= SAMPLE_NS:
            sample = _Sample(now_ns)
            self._samples = (*self._samples[1 - SAMPLES :], sample)
        sample.count += 1
        sample.total_ns += latency_ns
        sample.max_ns = max(sample.max_ns, latency_ns)

    def latency(self, now_ns: int) -> Latency:
        """The latency of the last 30 to 60 seconds."""
        recent = [
            sample for sample in self._samples if now_ns - sample.start_ns < SAMPLES * SAMPLE_NS
        ]
        count = sum(sample.count for sample in recent)
        if not count:
            return Latency()
        total_ns = sum(sample.total_ns for sample in recent)
        max_ns = max(sample.max_ns for sample in recent)
        return Latency(total_ns / count / NS_PER_MS, max_ns / NS_PER_MS)
