"""How many requests of each kind there were, and where their time went.

Owns: the metrics of MON-02 to MON-08 by API, and MON-09's and MON-11's for the loop as a whole.
Never: formats or serves them.

A request's time is cut where it changes hands: waiting to be started, this broker's own work,
waiting for others, waiting for its turn among the replies, being sent. All of it is recorded once,
when its last byte has left, because that costs less than a clock reading at each point.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.model.clock import Clock
from ottla.model.metrics import BUCKETS_MS, Counter, Histogram, Registry
from ottla.net.slot import Slot

UNKNOWN: Final = "Unknown"
NS_PER_MS: Final = 1e6
QUICK_MS: Final = BUCKETS_MS[0]

STAGES: Final = {
    "request_queue_time_ms": "Waiting to be started.",
    "local_time_ms": "Work of this broker.",
    "remote_time_ms": "Waiting for other brokers, for data or for a flush.",
    "response_queue_time_ms": "Waiting for its turn to be sent.",
    "response_send_time_ms": "Being sent.",
    "total_time_ms": "From the last byte received to the last byte sent.",
}


class ApiTimes:
    """The metrics of one kind of request."""

    __slots__ = ("local", "queue", "remote", "requests", "response_queue", "send", "total")

    def __init__(self, registry: Registry, request: str) -> None:
        stages = [
            registry.histogram(f"kafka_network_request_{name}", doc, request=request)
            for name, doc in STAGES.items()
        ]
        self.queue, self.local, self.remote, self.response_queue, self.send, self.total = stages
        self.requests: Counter = registry.counter(
            "kafka_network_requests_total", "Requests answered.", request=request
        )


class RequestMetrics:
    """Records requests whose replies have left. Hot: benchmarks/net.py."""

    def __init__(self, registry: Registry, names: Mapping[int, str], clock: Clock) -> None:
        self.registry = registry
        self.busy_ns = 0  # time spent in turns and sends since the start
        self._names = names
        self._clock = clock
        self._apis: dict[int, ApiTimes] = {}

    def record(self, slots: Iterable[Slot], flush_ns: int, sent_ns: int) -> None:
        """The replies of `slots` began to leave at `flush_ns` and were gone at `sent_ns`."""
        apis = self._apis
        send_ms = (sent_ns - flush_ns) / NS_PER_MS
        for slot in slots:
            api = apis.get(slot.api) or self._api(slot.api)
            api.requests.value += 1
            started, local, done = slot.started_ns, slot.local_ns, slot.done_ns
            _observe(api.queue, (started - slot.received_ns) / NS_PER_MS)
            _observe(api.local, (local - started) / NS_PER_MS)
            _observe(api.remote, (done - local) / NS_PER_MS)
            _observe(api.response_queue, (flush_ns - done) / NS_PER_MS)
            _observe(api.send, send_ms)
            _observe(api.total, (sent_ns - slot.received_ns) / NS_PER_MS)

    def watch_loop(self) -> None:
        """Offer the share of time the one loop, network and handlers alike, had nothing to do."""
        idle = IdleShare(self, self._clock)
        for name, doc in (
            (
                "kafka_network_processor_avg_idle_percent",
                "Idle share of the network, 0 to 1.",
            ),
            ("kafka_server_request_handler_avg_idle_percent", "Idle share of handlers, 0 to 1."),
        ):
            self.registry.gauge(name, doc, idle)

    def _api(self, key: int) -> ApiTimes:
        """Keys are the peers' choice: all unknown ones share one name."""
        name = self._names.get(key)
        if name is None:
            api = self._apis.get(-1)
            if api is None:
                api = self._apis[-1] = ApiTimes(self.registry, UNKNOWN)
            return api
        api = self._apis[key] = ApiTimes(self.registry, name)
        return api


class IdleShare:
    """One minus busy time over time passed, since it was last asked a moment ago."""

    def __init__(self, metrics: RequestMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._at_ns = clock.mono_ns()
        self._busy_ns = metrics.busy_ns
        self._share = 1.0

    def __call__(self) -> float:
        passed_ns = self._clock.mono_ns() - self._at_ns
        if passed_ns >= 1_000_000_000:  # two gauges asked together must not spoil each other
            busy_ns = self._metrics.busy_ns - self._busy_ns
            self._share = max(0.0, 1.0 - busy_ns / passed_ns)
            self._at_ns += passed_ns
            self._busy_ns = self._metrics.busy_ns
        return self._share


def _observe(histogram: Histogram, value: float) -> None:
    """`Histogram.observe`, with the bucket most values of a quick request fall into tried first."""
    histogram.counts[0 if value <= QUICK_MS else bisect_left(histogram.bounds, value)] += 1
    histogram.total += value
