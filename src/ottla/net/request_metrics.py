"""How many requests of each kind there were, and where their time went.

Owns: the metrics of MON-02 to MON-08 by API, and MON-09's and MON-11's for the loop as a whole.
Never: formats or serves them.

A request's time is cut where it changes hands: waiting to be started, this broker's own work,
waiting for others, waiting for its turn among the replies, being sent. All of it is recorded once,
when its last byte has left, because that costs less than a clock reading at each point.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.model.clock import Clock
from ottla.model.metrics import BUCKETS_MS, Counter, Histogram, Registry
from ottla.net.request_slot import RequestSlot

GROUP: Final = "kafka_network_requestmetrics"
UNKNOWN: Final = "Unknown"
NS_PER_MS: Final = 1e6
BUCKETS_NS: Final = tuple(round(bound * NS_PER_MS) for bound in BUCKETS_MS)
QUICK_NS: Final = BUCKETS_NS[0]

STAGES: Final = {
    "request_queue_time_ms": "Waiting to be started.",
    "local_time_ms": "Work of this broker.",
    "remote_time_ms": "Waiting for other brokers, for data or for a flush.",
    "response_queue_time_ms": "Waiting for its turn to be sent.",
    "response_send_time_ms": "Being sent.",
    "total_time_ms": "From the last byte received to the last byte sent.",
}


class ApiTimes:
    """The metrics of one kind of request.

    Counted are the requests, the sums of their timestamps, and for each stage those that were not
    quick. The histograms follow from these when they are read: a stage's sum is the difference of
    two sums of timestamps, and its first bucket has whatever is in no other.
    """

    __slots__ = (
        "_stages",
        "count",
        "done_ns",
        "flush_ns",
        "local_ns",
        "received_ns",
        "sent_ns",
        "started_ns",
    )

    def __init__(self, registry: Registry, request: str) -> None:
        self.count = 0
        self.received_ns = self.started_ns = self.local_ns = 0
        self.done_ns = self.flush_ns = self.sent_ns = 0
        self._stages: tuple[Histogram, ...] = tuple(
            registry.histogram(f"{GROUP}_{name}", doc, request=request)
            for name, doc in STAGES.items()
        )
        registry.tally(
            f"{GROUP}_requests_total", "Requests answered.", lambda: self.count, request=request
        )
        registry.before_read(self._update)

    def count_slow(self, *parts_ns: int) -> None:
        """The stages of one request, in the order of `STAGES`; at least one was not quick."""
        for stage, ns in zip(self._stages, parts_ns, strict=True):
            if ns > QUICK_NS:
                stage.counts[bisect_left(BUCKETS_NS, ns)] += 1

    def _update(self) -> None:
        sums_ns = (
            self.started_ns - self.received_ns,
            self.local_ns - self.started_ns,
            self.done_ns - self.local_ns,
            self.flush_ns - self.done_ns,
            self.sent_ns - self.flush_ns,
            self.sent_ns - self.received_ns,
        )
        for stage, ns in zip(self._stages, sums_ns, strict=True):
            stage.total = ns / NS_PER_MS
            stage.counts[0] = self.count - sum(stage.counts[1:])


class RequestMetrics:
    """Records requests whose replies have left. Hot: benchmarks/instructions.py."""

    def __init__(self, registry: Registry, names: Mapping[int, str], clock: Clock) -> None:
        self.registry = registry
        self.names = names
        self.busy_ns = 0  # time spent in turns and sends since the start
        self._clock = clock
        self._apis: dict[int, ApiTimes] = {}

    def record(self, slots: Sequence[RequestSlot], flush_ns: int, sent_ns: int) -> None:
        """The replies of `slots` began to leave at `flush_ns` and were gone at `sent_ns`."""
        for slot in slots:
            api = self._apis.get(slot.api) or self._api(slot.api)
            received, started, local, answered = (
                slot.received_ns, slot.started_ns, slot.local_ns, slot.done_ns,
            )  # fmt: skip
            api.count += 1
            api.received_ns += received
            api.started_ns += started
            api.local_ns += local
            api.done_ns += answered
            api.flush_ns += flush_ns
            api.sent_ns += sent_ns
            if sent_ns - received > QUICK_NS:
                api.count_slow(
                    started - received, local - started, answered - local,
                    flush_ns - answered, sent_ns - flush_ns, sent_ns - received,
                )  # fmt: skip

    def authentication_counter(self, listener: str, outcome: str) -> Counter:
        return self.registry.counter(
            f"kafka_server_socketservermetrics_{outcome}_authentication_total",
            f"Clients whose authentication was {outcome}, by TLS or SASL.",
            listener=listener,
        )

    def watch_loop(self) -> None:
        """Offer the share of time the one loop, network and handlers alike, had nothing to do."""
        idle = IdleShare(self, self._clock)
        for name, doc in (
            (
                "kafka_network_socketserver_network_processor_avg_idle_percent",
                "Idle share of the network, 0 to 1.",
            ),
            (
                "kafka_server_kafkarequesthandlerpool_request_handler_avg_idle_percent",
                "Idle share of handlers, 0 to 1.",
            ),
        ):
            self.registry.gauge(name, doc, idle)

    def _api(self, key: int) -> ApiTimes:
        """Keys are the peers' choice: all unknown ones share one name."""
        name = self.names.get(key)
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
