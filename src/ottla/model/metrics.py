"""Metrics: counters, gauges and histograms under Kafka's names.

Owns the numbers and their names. Never formats, serves or samples them: `broker/metrics_server.py`
turns a registry into Prometheus text on request. Updating one is a plain attribute
addition, because several happen on every request.

A name is Kafka's in Prometheus' spelling: `kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec`
is `kafka_server_brokertopicmetrics_bytes_in_total`. `docs/metrics.md` lists them all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]

BUCKETS_MS: Final[tuple[float, ...]] = (
    0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000,
)  # fmt: skip


class Counter:
    """Only grows. `value += n` is the whole interface on a hot path."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Tally:
    """A counter whose value is computed when it is read."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    @property
    def value(self) -> float:
        return self._read()


class Histogram:
    """How many observations fell under each bound, their sum and their count."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = BUCKETS_MS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


Gauge: TypeAlias = Callable[[], float]
Metric: TypeAlias = Counter | Tally | Histogram | Gauge
Series: TypeAlias = Callable[[], Iterable[tuple[Labels, float]]]
"""Gauges that come and go, such as one for each partition: listed when they are read."""


@dataclass(slots=True)
class Family:
    """All metrics of one name, told apart by their labels."""

    name: str
    doc: str
    metrics: dict[Labels, Metric] = field(default_factory=dict)
    series: Series | None = None


class Registry:
    """Every metric of one broker, by name and labels."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._by_label: dict[tuple[str, str], dict[tuple[str, Labels], None]] = {}
        """For each label and value, the metrics that carry it, so that they can be dropped."""
        self._updates: list[Callable[[], None]] = []

    def counter(self, name: str, doc: str, **labels: str) -> Counter:
        metric = self._get_or_create(name, doc, labels, Counter)
        assert isinstance(metric, Counter)
        return metric

    def tally(self, name: str, doc: str, read: Callable[[], float], **labels: str) -> None:
        """A counter computed when it is read; registering it again replaces the reader."""
        self._put(name, doc, _key(labels), Tally(read))

    def histogram(self, name: str, doc: str, **labels: str) -> Histogram:
        metric = self._get_or_create(name, doc, labels, Histogram)
        assert isinstance(metric, Histogram)
        return metric

    def gauge(self, name: str, doc: str, read: Gauge, **labels: str) -> None:
        """A gauge computed when it is read; registering it again replaces the reader."""
        self._put(name, doc, _key(labels), read)

    def series(self, name: str, doc: str, read: Series) -> None:
        self._family(name, doc).series = read

    def forget(self, **labels: str) -> None:
        """Drop every metric that carries all of these labels (a topic that is gone)."""
        required = labels.items()
        carriers = [list(self._by_label.get(label, ())) for label in required]
        for name, key in min(carriers, key=len, default=[]):
            if required <= dict(key).items():
                del self._families[name].metrics[key]
                self._unlist(name, key)

    def before_read(self, update: Callable[[], None]) -> None:
        """Call this before metrics are read: it updates those of a hot path from its own sums."""
        self._updates.append(update)

    def families(self) -> Iterator[Family]:
        for update in self._updates:
            update()
        return iter(sorted(self._families.values(), key=lambda family: family.name))

    def _family(self, name: str, doc: str) -> Family:
        return self._families.setdefault(name, Family(name, doc))

    def _get_or_create(
        self, name: str, doc: str, labels: Mapping[str, str], make: Callable[[], Metric]
    ) -> Metric:
        key = _key(labels)
        metric = self._family(name, doc).metrics.get(key)
        return self._put(name, doc, key, make()) if metric is None else metric

    def _put(self, name: str, doc: str, key: Labels, metric: Metric) -> Metric:
        self._family(name, doc).metrics[key] = metric
        for label in key:
            self._by_label.setdefault(label, {})[name, key] = None
        return metric

    def _unlist(self, name: str, key: Labels) -> None:
        for label in key:
            carriers = self._by_label[label]
            del carriers[name, key]
            if not carriers:
                del self._by_label[label]


def _key(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
